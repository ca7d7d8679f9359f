//! Pages that open in any browser: one HTML file without links to anything else.

/// A page in the making.
pub struct Page {
    html: String,
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem;border-bottom:1px solid #ddd}\
table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}\
.wide{overflow-x:auto}th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #eee}\
th:first-child,td:first-child{text-align:left}th{font-weight:600}\
svg{max-width:100%;height:auto}.dot{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.4em}\
.note{color:#666;font-size:.9rem}@media print{body{margin:0;max-width:none}h2{break-after:avoid}svg,tr{break-inside:avoid}}";

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Self {
        let title = escape(title);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
             <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        );
        Page { html }
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) {
        self.push(&format!("<h2>{}</h2>\n", escape(text)));
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) {
        self.push(&format!("<p>{}</p>\n", escape(text)));
    }

    /// A paragraph in small print.
    pub fn note(&mut self, text: &str) {
        self.push(&format!("<p class=\"note\">{}</p>\n", escape(text)));
    }

    /// Anything that is HTML already.
    pub fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// A table; cells are text.
    pub fn table(&mut self, header: &[String], rows: &[Vec<String>]) {
        let line = |cells: &[String], tag: &str| {
            let cells = cells.iter().map(|c| format!("<{tag}>{}</{tag}>", escape(c)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let body: String = rows.iter().map(|row| line(row, "td")).collect();
        self.push(&format!(
            "<div class=\"wide\"><table><thead>{}</thead><tbody>\n{body}</tbody></table></div>\n",
            line(header, "th")
        ));
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        self.push("</body></html>\n");
        self.html
    }
}

/// Text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
