"""The physical program: tasks bound to sites (`tasks`), made from a placed plan (`lower`)."""
