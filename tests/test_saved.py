"""Plans in files: what is saved is what is loaded, and only for the graph it was made for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

import einsummable as ein
from einsummable.codec import from_json, to_json
from einsummable.errors import PlanError
from einsummable.planner import saved
from einsummable.planner.eindecomp import plan
from einsummable.planner.placement import place

MLP = "H[b,h] = relu(sum[d] X[b,d] * W[d,h])\nY[b,o] = H[b,h] * V[h,o]"
SHAPES = {"X": (8, 5), "W": (5, 7), "V": (7, 3)}


@settings(deadline=None, max_examples=50)
@given(graphs(), st.integers(1, 6))
def test_plans_and_placements_of_any_program_survive_json(graph, p):
    found = plan(graph, p)
    whole = saved.SavedPlan(found, place(found, p))
    assert from_json(saved.SavedPlan, to_json(whole)) == whole


def test_a_saved_plan_is_used_again(tmp_path):
    made = ein.compile(MLP, sites=4, pins={"Y": {"b": 4}}, **SHAPES)
    made.save_plan(tmp_path / "plan.json")
    other = "# in other words\n" + MLP.replace("H[b,h] =", "H[b,h]   =")
    again = ein.compile(other, sites=4, plan=tmp_path / "plan.json", **SHAPES)
    assert (again.plan.partitions, again.placement) == (made.plan.partitions, made.placement)
    assert again.tasks.tasks == made.tasks.tasks
    assert again.plan.graph.text == other


def test_a_plan_is_placed_anew_for_other_sites(tmp_path):
    made = ein.compile(MLP, sites=4, **SHAPES)
    made.save_plan(tmp_path / "plan.json")
    fewer = ein.compile(MLP, sites=2, plan=str(tmp_path / "plan.json"), **SHAPES)
    assert (fewer.plan.partitions, fewer.placement.sites, fewer.p) == (made.plan.partitions, 2, 4)
    assert ein.compile(MLP, sites=2, plan=made.plan, **SHAPES).placement == fewer.placement


@pytest.mark.parametrize(
    ("program", "shapes", "note"),
    [
        (MLP, SHAPES | {"X": (9, 5)}, r"X is \[8, 5\] f32 in the plan, \[9, 5\] f32 in this program"),
        (MLP.replace("relu", "tanh"), SHAPES, r"H is .*tanh\(x\).* here, .*relu\(x\).* in the plan"),
        ("Y[b,h] = X[b,d] * W[d,h]", {"X": (8, 5), "W": (5, 7)}, "the input 'V' is only in the plan"),
        (MLP + "\nZ[o] = sum[b] Y[b,o]\noutput Y, Z", SHAPES, "the plan has 6 nodes, this program 7"),
        (MLP.replace("Y[", "R["), SHAPES, "the results or the scalars have other names"),
    ],
)
def test_a_plan_for_another_program_is_refused(program, shapes, note):
    with pytest.raises(PlanError, match=f"the plan is for another program\nnote: {note}"):
        ein.compile(program, plan=ein.compile(MLP, sites=2, **SHAPES).plan, **shapes)


def test_files_that_hold_no_plan_are_refused(tmp_path):
    with pytest.raises(PlanError, match=r"the plan '.*none\.json' cannot be read: No such file"):
        saved.load(tmp_path / "none.json")
    (tmp_path / "odd.json").write_text('{"plan": 3}')
    with pytest.raises(PlanError, match=r"the file '.*odd\.json' holds no plan"):
        saved.load(tmp_path / "odd.json")
    found = plan(ein.compile(MLP, sites=2, **SHAPES).graph, 2)
    (tmp_path / "new.json").write_text(to_json(saved.SavedPlan(found, None, "einsummable plan 7")))
    with pytest.raises(PlanError, match="has the format 'einsummable plan 7', which is not known"):
        saved.load(tmp_path / "new.json")
