"""The explorer in a real browser: by mouse, by keyboard, in dark colours and on a phone.

Debian's chromium (`apt-get install chromium`) is driven by Playwright (`pip install playwright`).
"""

import os
import shutil

import pytest

from explorer_engine import FOLDER

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="chromium is not installed (Debian: apt-get install chromium)"),
]

ADDRESS = (FOLDER / "index.html").as_uri()
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
FITTED = "Fitted models"


@pytest.fixture(scope="module")
def browser():
    # root, as in a container, has no sandbox
    flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Return a function that opens the page; at the end, no script may have failed and nothing else been asked for."""
    contexts, faults, requests = [], [], []

    def opens(size=DESKTOP, scheme="light"):
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(ADDRESS)
        says(page, "Ten functions from the prior")
        return page

    yield opens
    for context in contexts:
        context.close()
    assert faults == []
    folder = FOLDER.as_uri()
    assert [url for url in requests if not url.startswith((folder, "data:"))] == []


def says(page, *texts):
    """Wait until the summary says all of these texts."""
    for text in texts:
        page.wait_for_function("text => document.getElementById('summary').textContent.includes(text)", arg=text)


def pixels(page):
    return page.evaluate("document.getElementById('plot').toDataURL()")


def changes(page, before):
    """Wait until the picture is another one."""
    page.wait_for_function("before => document.getElementById('plot').toDataURL() !== before", arg=before)


def click_plot(page, across, down):
    box = page.locator("#plot").bounding_box()
    page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])


def width_of_band(page):
    """Return the widest of the band, as the summary says it."""
    return float(page.locator("#summary").inner_text().split("widest, plus or minus ")[1].split(" ")[0])


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ("#period", "3"),
        ("#smoothness", "0.4"),
        ("#weights", "0.5"),
        ("#strength", "1"),
        ("#width", "5"),
        ("#noise", "1"),
    ],
)
def test_a_slider_changes_the_prior_at_once(opened, control, value):
    page = opened()
    before = pixels(page)
    page.locator(control).fill(value)
    changes(page, before)
    page.locator(f"{control}-value").get_by_text(value).wait_for()


@pytest.mark.parametrize(
    "kernel", ["none", "rbf", "matern32", "matern12", "linear+rbf", "linear+periodic", "periodic*rbf"]
)
def test_a_kernel_shows_its_own_settings(opened, kernel):
    page = opened()
    before = pixels(page)
    page.get_by_label("Input kernel", exact=True).select_option(kernel)
    changes(page, before)
    assert page.locator("#period").is_visible() == ("periodic" in kernel)
    assert page.locator("#lengthscale").is_visible() == ("rbf" in kernel or "matern" in kernel)
    page.get_by_label("Hidden layers").select_option("2")
    says(page, "2 hidden layers")


def test_clicks_add_and_remove_points(opened):
    page = opened()
    click_plot(page, 0.5, 0.4)
    says(page, "after 1 point", "Of 512 draws of the hidden layers")
    click_plot(page, 0.7, 0.6)
    says(page, "after 2 points")
    page.locator("#legend").get_by_text("added points").wait_for()
    click_plot(page, 0.7, 0.6)
    says(page, "after 1 point")
    page.get_by_role("button", name="Remove last point").click()
    says(page, "Ten functions from the prior")
    assert page.get_by_role("button", name="Remove all points").is_disabled()


def test_many_points_on_a_wave_leave_a_narrow_band(opened):
    page = opened()
    before = width_of_band(page)
    for number in range(12):
        # three phases of the period of 1.5, again and again
        click_plot(page, 0.2 + 0.055 * number, (0.35, 0.6, 0.5)[number % 3])
    says(page, "after 12 points")
    assert width_of_band(page) < before


def test_the_keyboard_does_what_the_mouse_does(opened):
    page = opened()
    plot = page.get_by_role("application")
    plot.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#cursor").inner_text().startswith("x = 0.1, y = 0. Here the mean is")
    page.keyboard.press("Shift+ArrowUp")
    assert "y = 0.8" in page.locator("#cursor").inner_text()
    page.keyboard.press("Enter")
    says(page, "after 1 point")
    assert page.locator("#cursor").inner_text() == "Added a point at x = 0.1, y = 0.8."
    page.keyboard.press("Delete")
    says(page, "Ten functions from the prior")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_tab_reaches_everything_and_every_stop_has_a_name(opened):
    page = opened()
    names = []
    for _ in range(30):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "() => { const e = document.activeElement; if (e === document.body) return null;"
            " return e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || ''; }"
        )
        if name is None:
            break
        names.append(name.split("\n")[0].strip())
    assert all(names)
    assert {"Dark colours", "A prior of your own", "Draw again", "Period", "Input kernel"} <= set(names)


def test_every_fitted_model_is_shown_without_a_fault(opened):
    page = opened()
    page.get_by_label(FITTED).check()
    titles = page.get_by_label("Fitted model", exact=True).locator("option").all_inner_texts()
    assert len(titles) >= 12
    for title in titles:
        page.get_by_label("Fitted model", exact=True).select_option(label=title)
        says(page, f"{title}, fitted to")
        assert page.locator("#factor").is_visible() == ("periodic" in title)


def misfit(page, factor, learned):
    """Return the root mean square of the data's distances from the mean, with a changed period."""
    return page.evaluate(
        """([factor, learned]) => {
            const { scenes, models } = globalThis.explorer;
            const { x, mean, data } = scenes.fittedModel(models.models[0], { factor, learned }, [], 1);
            const place = (p) => Math.round(((p.x - x[0]) / (x[x.length - 1] - x[0])) * (x.length - 1));
            return Math.sqrt(data.reduce((sum, p) => sum + (p.y - mean[place(p)]) ** 2, 0) / data.length);
        }""",
        [factor, learned],
    )


def test_the_period_of_a_fitted_model_moves_its_prediction(opened):
    page = opened()
    page.get_by_label(FITTED).check()
    says(page, "The fitted period is 1.67")
    fitted = width_of_band(page)
    page.locator("#factor").fill("0.5")
    says(page, "set to 2.36 in place of the fitted 1.67", "what was learned is kept")
    assert width_of_band(page) == pytest.approx(fitted, rel=0.2)
    kept = pixels(page)
    page.get_by_label("look at the data again").check()
    says(page, "has seen the data again")
    changes(page, kept)
    page.get_by_role("button", name="Back to the fitted period").click()
    says(page, "The fitted period is 1.67")
    # the data were made with noise of 0.1; with what was learned kept, the wave is out of step
    assert misfit(page, 1, "keep") < 0.15
    assert misfit(page, 1, "keep") < misfit(page, 2**0.5, "again") < misfit(page, 2**0.5, "keep")


def test_a_point_moves_a_fitted_model(opened):
    page = opened()
    page.get_by_label(FITTED).check()
    page.get_by_label("Fitted model", exact=True).select_option(label="Wave with a gap: RBF kernel")
    says(page, "RBF kernel, fitted to 60 rows")
    before = pixels(page)
    click_plot(page, 0.9, 0.3)
    says(page, "1 point was added")
    changes(page, before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_the_button(opened, scheme):
    page = opened(scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 28)"
    own, other = (light, dark) if scheme == "light" else (dark, light)
    assert page.evaluate(ground) == own
    button = page.get_by_role("button", name="Dark colours")
    before = pixels(page)
    button.click()
    assert page.evaluate(ground) == other
    assert button.get_attribute("aria-pressed") == str(scheme == "light").lower()
    changes(page, before)


def test_a_phone_scrolls_in_one_direction_only(opened):
    page = opened(PHONE)
    for mode in ("A prior of your own", FITTED):
        page.get_by_label(mode).check()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert page.locator("#plot").bounding_box()["width"] > 0.8 * PHONE["width"]


def test_a_page_of_a_second_visit_looks_as_the_first(opened):
    first, second = opened(), opened()
    assert pixels(first) == pixels(second)
