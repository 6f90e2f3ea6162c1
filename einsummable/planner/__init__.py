"""EinDecomp: how an EinGraph is cut into blocks (`eindecomp`) and where the blocks live (`placement`)."""
