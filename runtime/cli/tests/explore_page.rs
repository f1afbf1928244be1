//! The page of `rtc explore` in a browser: its script runs, and lines light up together.
#![allow(clippy::unwrap_used)]

mod browser;
mod scratch;

use browser::Browser;
use scratch::{LAUNCH, Scratch, tensors, tutorial};
use std::process::Command;

/// The document after the page has run, with more script at its end; nothing without a browser.
fn run(scratch: &Scratch, script: &str) -> Option<String> {
    let browser = browser::command()?;
    let page = std::fs::read_to_string(scratch.0.join("k.html")).unwrap();
    let driven = page.replace("</body>", &format!("<script>\n{script}\n</script></body>"));
    assert_ne!(page, driven);
    scratch.write("driven.html", driven);
    let url = format!("file://{}", scratch.0.join("driven.html").display());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", scratch.0.join("profile").display()))
        .arg(url)
        .output()
        .unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

fn page(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("launch.json", LAUNCH).write("in.safetensors", tensors(300));
    let output = scratch.rtc(&["explore", "k.rt", "--launch", "launch.json", "--arch", "sm_80"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scratch
}

/// What a script wrote into the title.
fn title(document: &str) -> &str {
    document.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap()
}

#[test]
fn a_click_on_a_line_lights_up_its_ptx() {
    let scratch = page("explore-click");
    let script = "const before = document.querySelectorAll('#pane-ptx .row.picked').length;\n\
                  document.querySelectorAll('#pane-source .row')[4].click();\n\
                  const texts = (pane) => [...document.querySelectorAll(`#pane-${pane} .row.picked`)].map((row) => row.textContent);\n\
                  document.title = [before, texts('source').length, texts('ir').some((text) => text.includes('store')),\n\
                    texts('ptx').some((text) => text.includes('st.global')), texts('ptx').some((text) => text.includes('%tid'))].join(' ');";
    let Some(document) = run(&scratch, script) else { return };
    assert_eq!(title(&document), "0 1 true true false");
}

#[test]
fn a_click_on_ptx_lights_up_the_source() {
    let scratch = page("explore-back");
    let script = "const row = [...document.querySelectorAll('#pane-ptx .row')].find((row) => row.textContent.includes('st.global'));\n\
                  row.click();\n\
                  document.title = document.querySelector('#pane-source .row.picked .no').textContent;";
    let Some(document) = run(&scratch, script) else { return };
    assert_eq!(title(&document), "5");
}

#[test]
fn every_view_and_every_pass_is_drawn() {
    let scratch = page("explore-views");
    let script = "const errors = [];\n\
                  addEventListener('error', (event) => errors.push(event.message));\n\
                  const drawn = [];\n\
                  for (const button of document.querySelectorAll('#views button')) {\n  button.click();\n  \
                  drawn.push([...document.querySelectorAll('.view')].filter((view) => !view.hidden && view.textContent.length > 40).length);\n}\n\
                  for (let pass = 0; pass < page.passes.length; pass++) { go_to_pass(pass); drawn.push(document.querySelectorAll('#pane-ir .row').length >= page.passes[pass].lines.length ? 1 : 0); }\n\
                  const bars = document.querySelectorAll('#time rect[data-bar]').length === page.launch.timeline.bars.length;\n\
                  document.title = [...drawn, bars, document.querySelectorAll('#view-launch svg').length, ...errors].join(' ');";
    let Some(document) = run(&scratch, script) else { return };
    let found: Vec<&str> = title(&document).split(' ').collect();
    let (drawn, rest) = found.split_at(found.len() - 2);
    assert!(drawn.len() > 7 && drawn.iter().all(|number| *number == "1"), "{found:?}");
    assert_eq!(rest, ["true", "2"]);
}

#[test]
fn the_timeline_of_the_tutorial_has_copies_two_iterations_ahead() {
    let scratch = Scratch::new("explore-ahead");
    let (source, lines) = tutorial(&scratch);
    let arguments = ["--launch", "matmul.json", "--arch", "sm_80", "--no-sanitize", "-o", "k.html"];
    let output = scratch.rtc(&[&["explore", &source], &arguments[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = "document.querySelector('#views [data-view=timeline]').click();\n\
                  const rings = [...document.querySelectorAll('[data-ring]')].map((ring) => `${ring.dataset.ring}:${ring.dataset.ahead}`);\n\
                  const copies = [...document.querySelectorAll('#time rect.copy[data-iteration][data-for]')];\n\
                  const ahead = copies.filter((copy) => copy.dataset.for - copy.dataset.iteration === 2);\n\
                  document.title = [...rings, copies.length > 20, ahead.length === copies.length].join(', ');";
    let Some(document) = run(&scratch, script) else { return };
    assert_eq!(title(&document), format!("line {}:2, line {}:2, true, true", lines[0], lines[1]));
}

/// The launch of another program has no counts, and no empty column for them.
#[test]
fn what_was_not_counted_is_not_shown() {
    let scratch = page("explore-counted");
    let count = "document.title = [document.querySelectorAll('.row .heat').length > 8, document.querySelectorAll('#view-launch svg').length, \
                 document.querySelector('#view-launch').textContent.includes('recorded by a program')].join(' ');";
    let Some(document) = run(&scratch, count) else { return };
    assert_eq!(title(&document), "true 2 false");
    let counted = std::fs::read_to_string(scratch.0.join("k.html")).unwrap();
    let recording = r#""executor":"program","#;
    let timeline = r#""timeline":{"recording":{"device":"emulator","blocks":1,"events":1,"lost":0},"#;
    let other = counted.replace(r#""executor":"emulator","#, recording).replace(r#""timeline":{"#, timeline);
    assert_ne!(counted, other);
    scratch.write("k.html", other);
    let Some(document) = run(&scratch, count) else { return };
    assert_eq!(title(&document), "false 0 true");
}

/// In a window of a phone's width, with warps of several blocks.
#[test]
fn labels_have_room_in_a_narrow_window() {
    let scratch = Scratch::new("explore-narrow");
    let (source, _) = tutorial(&scratch);
    let recorded =
        ["--no-sanitize", "--instrument", "--instrument-blocks", "12", "--device", "emulator", "-o", "k.html"];
    let launch = ["explore", &source, "--launch", "matmul.json", "--arch", "sm_80"];
    let output = scratch.rtc(&[&launch[..], &recorded].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let url = format!("file://{}", scratch.0.join("k.html").display());
    let Some(mut browser) = Browser::open(&scratch.0.join("profile"), &url, (390, 800)) else { return };
    browser.until("document.querySelectorAll('#views button').length === 5");
    // What is wider than the window, in each view.
    let wide = "[...document.querySelectorAll('#views button')].filter((button) => (button.click(), \
                document.documentElement.scrollWidth > innerWidth)).map((button) => button.textContent).join()";
    assert_eq!(browser.value(wide), "");
    browser.value("document.querySelector('#views [data-view=timeline]').click()");
    browser.until("document.querySelector('#time svg .lane')");
    // Names of warps end before the bars, numbers of cycles before the edge of the picture.
    let texts = "(() => { const svg = document.querySelector('#time svg'), lane = svg.querySelector('.lane').x.baseVal.value;\n\
                 const end = (text) => text.getBBox().x + text.getBBox().width, width = svg.width.baseVal.value;\n\
                 const all = [...svg.querySelectorAll('text:not(.on)')], names = all.filter((text) => text.getAttribute('x') === '2');\n\
                 return [names.length, ...names.filter((text) => end(text) > lane), ...all.filter((text) => end(text) > width)]\
                 .map((text) => text.textContent ?? text).join(); })()";
    let found = browser.value(texts);
    let found = found.as_str().unwrap();
    assert!(found.parse::<u32>().is_ok_and(|names| names >= 12 * 4), "{found}");
}
