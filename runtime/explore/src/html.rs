//! The page as HTML: a template with style, script and data in it.

use crate::model::Page;
use minijinja::{Environment, context};
use serde_json::Value;

const TEMPLATE: &str = include_str!("page/page.html");
const FAILURE: &str = include_str!("page/failure.html");
const EDITOR: &str = include_str!("edit/page.html");
const EDITOR_STYLE: &str = include_str!("edit/edit.css");
const STYLE: &str = include_str!("page/page.css");
/// The script that loads a page again, for the page and for that of an error.
const WATCH: &str = include_str!("page/watch.js");
/// The parts of the script, in order.
const SCRIPT: &[&str] = &[
    include_str!("page/base.js"),
    include_str!("page/code.js"),
    include_str!("page/layouts.js"),
    include_str!("page/launch.js"),
    include_str!("page/timeline.js"),
    WATCH,
    include_str!("page/start.js"),
];

/// The page; with `reloads`, one that asks the server that it comes from for changes.
pub fn html(page: &Page, reloads: bool) -> String {
    let data = serde_json::to_string(page).unwrap_or_default();
    let rendered = render(&page.kernel, &page.arch, &data, reloads);
    // The template is part of the program, so that it cannot be wrong for one page and right for another.
    rendered.unwrap_or_else(|error| format!("<!doctype html><pre>{error}</pre>"))
}

/// A page that shows an error, and loads itself again when the server has another state of the files.
pub fn failure(message: &str) -> String {
    let content = context! { message => message, watch => WATCH };
    let rendered = Environment::new().render_named_str("failure.html", FAILURE, content);
    rendered.unwrap_or_default()
}

/// The page of data that [`Page`] became as JSON.
pub(crate) fn of_data(data: &Value) -> String {
    let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    let rendered = render(&text("kernel"), &text("arch"), &data.to_string(), false);
    rendered.unwrap_or_else(|error| format!("<!doctype html><pre>{error}</pre>"))
}

/// The page with an editor; `setup` is for its script.
pub(crate) fn editor(name: &str, setup: &Value) -> String {
    let style = format!("{STYLE}{EDITOR_STYLE}");
    let content = context! {
        name => name, style => style, setup => in_script(&setup.to_string()), token => setup["token"].as_str(),
    };
    let rendered = Environment::new().render_named_str("editor.html", EDITOR, content);
    rendered.unwrap_or_default()
}

/// The place of a result before the first run.
pub(crate) fn waiting() -> String {
    format!("<!doctype html><meta charset=\"utf-8\"><style>{STYLE}</style><p class=\"view dim\">No run yet.</p>")
}

/// No text in the data may end the element that it is in.
fn in_script(json: &str) -> String {
    json.replace("</", "<\\/").replace("<!--", "<\\u0021--")
}

fn render(kernel: &str, arch: &str, data: &str, reloads: bool) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE)?;
    environment.get_template("page.html")?.render(context! {
        kernel => kernel,
        arch => arch,
        style => STYLE,
        script => SCRIPT.concat(),
        data => in_script(data),
        reloads => reloads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, Resources, explore};
    use rtc_source::SourceMap;

    fn page_of(text: &str) -> String {
        let mut sources = SourceMap::new();
        sources.add("k.rt", text);
        let input = Input {
            kernel: "k<b>",
            arch: "sm_80",
            version: "0",
            sources: &sources,
            passes: &[],
            ptx: "",
            sass: None,
            remarks: &[],
            resources: &Resources::default(),
            launch: None,
        };
        html(&explore(&input), false)
    }

    #[test]
    fn no_text_of_a_source_becomes_a_part_of_the_page() {
        let (plain, wicked) = (page_of("pass"), page_of("# </script><script>alert(1)</script> <!-- <script>"));
        let count = |page: &str, what: &str| page.matches(what).count();
        for tag in ["</script", "<!--"] {
            assert_eq!(count(&plain, tag), count(&wicked, tag), "{tag}");
        }
        assert!(wicked.contains("<title>k&lt;b&gt; for sm_80</title>"));
        assert!(failure("<script>").contains("<pre>&lt;script&gt;</pre>"));
    }
}
