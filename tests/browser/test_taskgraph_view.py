"""The TaskGraph in a real browser: it pans, zooms, folds, lights up, and is smooth with thousands."""

import pytest

from browser.test_timeline import LINES, LOAD, PAN

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TEXT = """C[i,k] = A[i,j] * B[j,k]
D[i,l] = relu(sum[k] C[i,k] * B[k,l])
F[i,m] = D[i,l] * A[l,m]"""
#: 48 tasks, 18 of them moves: partial sums, and blocks that are put together.
SMALL = f"""E = np.eye(64, dtype='f4')
net = ein.compile('''{TEXT}''', A=E, B=E, sites=3, pins={{"C": {{"i": 1, "j": 3, "k": 1}}}})"""
SHOWN = [LOAD, SMALL, "net.run()\nw = net.show_tasks()\nw"]


def transform(page):
    page.wait_for_timeout(150)
    return page.locator(".ein-tg-picture").evaluate("e => e.style.transform")


def lit(page):
    return page.locator(".ein-tg-picture .ein-lit").count()


def test_selecting_a_task_lights_what_belongs_to_it(notebook):
    opened = notebook(SHOWN, height=1300)
    page = opened.page
    page.wait_for_selector(".ein-tg-picture svg")
    number = opened.python(
        "print(next(i for i, t in enumerate(net.tasks.tasks) if type(t).__name__ == 'Move'))"
    )
    task = page.locator(f'.ein-tg-picture [data-keys="task:{number}"]')
    task.dispatch_event("click")
    page.wait_for_function("() => document.querySelector('.ein-tg-facts span')")
    links = set(opened.python(f"print(*w.links['task:{number}'])").split())
    near = [key for key in links if key.startswith("task:")]
    assert lit(page) == len(near) + 1
    assert page.locator(".ein-wire-lit").count() > 0
    assert page.locator(".ein-tl-chip.ein-lit").count() == 1
    facts = page.locator(".ein-tg-facts").inner_text()
    moved = opened.python(
        f"from einsummable.taskgraph.tasks import nbytes\nprint(nbytes(net.tasks.tasks[{number}]))"
    )
    assert f"{float(moved) / 1e3:.2f} kB" in facts
    assert "measured" in facts
    assert "simulated" in facts
    page.keyboard.press("Escape")
    page.locator(".ein-tg-frame").focus()
    page.keyboard.press("Escape")
    # a span of the formula lights its tasks
    page.locator(".ein-spans [data-keys]").first.hover()
    assert lit(page) > 1
    page.mouse.move(2, 2)
    # from Python
    opened.python("w.selection = 'site:1'")
    page.wait_for_timeout(400)
    sites = int(opened.python("print(sum(t.site == 1 for t in net.tasks.tasks))"))
    assert page.locator(".ein-tg-picture [data-item].ein-lit").count() == sites
    assert "busy" in page.locator(".ein-tg-facts").inner_text()


def test_it_folds_by_node_and_by_site(notebook):
    opened = notebook(SHOWN, height=1300)
    page = opened.page
    page.wait_for_selector(".ein-tg-picture svg")
    items = page.locator(".ein-tg-picture [data-item]")
    every = int(opened.python("print(len(net.tasks.tasks))"))
    assert items.count() == every
    opened.python("w.selection = 'site:2'")
    page.get_by_role("button", name="Fold site 2").click()
    page.wait_for_selector('.ein-tg-picture [data-keys^="fold:"]')
    assert items.count() < every
    assert opened.python("print(w.folded)") == "['site:2']"
    page.get_by_role("button", name="Unfold site 2").click()
    page.wait_for_function(
        f"() => document.querySelectorAll('.ein-tg-picture [data-item]').length === {every}"
    )
    for detail in ("nodes", "sites", "summary"):
        before = page.locator(".ein-tg-picture").inner_html()
        page.get_by_label("how much is drawn").select_option(detail)
        page.wait_for_function("b => document.querySelector('.ein-tg-picture').innerHTML !== b", arg=before)
        assert opened.python("print(w.detail)") == detail
    assert items.count() == 0
    assert page.locator('.ein-tg-picture [data-keys^="node:"]').count() > 3


def test_it_pans_zooms_and_names_its_lanes(notebook):
    page = notebook(SHOWN, height=1300).page
    page.wait_for_selector(".ein-tg-picture svg")
    first = transform(page)
    page.get_by_role("button", name="Zoom in").click()
    assert transform(page) != first
    box = page.locator(".ein-tg-frame").bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 180, steps=4)
    page.mouse.up()
    assert page.locator(".ein-tg-name").first.inner_text().startswith("site ")
    # the focus is followed
    for _ in range(12):
        page.locator(".ein-tg-picture [data-item]").last.focus()
    page.wait_for_timeout(200)
    inside = page.locator(".ein-tg-picture [data-item]").last.evaluate(
        """e => {
          const box = e.getBoundingClientRect(), frame = e.closest('.ein-tg-frame').getBoundingClientRect();
          return box.left >= frame.left - 1 && box.right <= frame.right + 1;
        }"""
    )
    assert inside
    page.get_by_role("button", name="Show all of the picture").click()
    page.wait_for_timeout(200)
    assert page.locator(".ein-tg-name").count() == 0


def test_thousands_of_tasks_are_drawn_at_once_and_pan_smoothly(notebook):
    cell = "net = ein.compile('\\n'.join(lines), A=(512, 512), X0=(512, 512), sites=8, p=512)"
    opened = notebook([LOAD, LINES.format(3), cell, "net.simulation\nw = net.show_tasks()\nw"], height=1300)
    page = opened.page
    page.wait_for_selector(".ein-taskgraph[data-drawn]", timeout=60_000)
    tasks = int(opened.python("print(len(net.tasks.tasks))"))
    assert tasks >= 2000
    assert page.locator(".ein-tg-picture [data-item]").count() == tasks
    drawn = float(page.locator(".ein-taskgraph").get_attribute("data-drawn"))
    frames = page.evaluate(PAN, ".ein-tg-frame")
    print(f"{tasks} tasks: drawn in {drawn:.0f} ms, {frames:.0f} frames a second")
    # 2 s and 20 frames a second are wanted; the machine may be busy.
    assert drawn < 6000
    assert frames > 6


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [800, 1400])
def test_nothing_is_cut_off_or_too_small(notebook, theme, width):
    page = notebook(SHOWN, theme=theme, width=width, height=1300).page
    page.wait_for_selector(".ein-taskgraph[data-drawn]")
    page.locator(".ein-tl-chip").last.click()
    page.wait_for_selector(".ein-tg-facts")
    small = page.locator(".ein-taskgraph svg text").evaluate_all(
        """all => all.filter(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a < 11)
          .map(t => t.textContent)"""
    )
    assert small == []
    outside = page.locator(".ein-taskgraph").evaluate(
        """root => [...root.querySelectorAll('button, select, span, h4, .ein-caption')].filter(e => {
          if (!e.checkVisibility({contentVisibilityAuto: true})) return false;  // in a menu that is shut
          const box = e.getBoundingClientRect(), frame = root.getBoundingClientRect();
          return box.right > frame.right + 1 || box.left < frame.left - 1;
        }).map(e => e.textContent)"""
    )
    assert outside == []
