//! The page as HTML: a template with style, script and data in it.

use crate::model::Page;
use minijinja::{Environment, context};

const TEMPLATE: &str = include_str!("page/page.html");
const FAILURE: &str = include_str!("page/failure.html");
const STYLE: &str = include_str!("page/page.css");
/// The parts of the script, in order.
const SCRIPT: &[&str] = &[
    include_str!("page/base.js"),
    include_str!("page/code.js"),
    include_str!("page/layouts.js"),
    include_str!("page/launch.js"),
    include_str!("page/timeline.js"),
    include_str!("page/start.js"),
];

/// The page; with `reloads`, one that asks the server that it comes from for changes.
pub fn html(page: &Page, reloads: bool) -> String {
    let data = serde_json::to_string(page).unwrap_or_default();
    let rendered = render(page, &data, reloads);
    // The template is part of the program, so that it cannot be wrong for one page and right for another.
    rendered.unwrap_or_else(|error| format!("<!doctype html><pre>{error}</pre>"))
}

/// A page that shows an error, and loads itself again when the server has another state of the files.
pub fn failure(message: &str) -> String {
    let rendered = Environment::new().render_named_str("failure.html", FAILURE, context! { message => message });
    rendered.unwrap_or_default()
}

fn render(page: &Page, data: &str, reloads: bool) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE)?;
    environment.get_template("page.html")?.render(context! {
        kernel => page.kernel,
        arch => page.arch,
        style => STYLE,
        script => SCRIPT.concat(),
        // No text in the data may end the element that it is in.
        data => data.replace("</", "<\\/").replace("<!--", "<\\u0021--"),
        reloads => reloads,
    })
}
