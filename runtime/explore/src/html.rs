//! The page as HTML: a template with style, script and data in it.

use crate::model::Page;
use minijinja::{Environment, context};

const TEMPLATE: &str = include_str!("page/page.html");
const FAILURE: &str = include_str!("page/failure.html");
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
    let rendered = render(page, &data, reloads);
    // The template is part of the program, so that it cannot be wrong for one page and right for another.
    rendered.unwrap_or_else(|error| format!("<!doctype html><pre>{error}</pre>"))
}

/// A page that shows an error, and loads itself again when the server has another state of the files.
pub fn failure(message: &str) -> String {
    let content = context! { message => message, watch => WATCH };
    let rendered = Environment::new().render_named_str("failure.html", FAILURE, content);
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
