//! Pages that open in any browser: one HTML file without external links.
//!
//! The content security policy allows only the script and the style in the page, identified by
//! their hashes, and no loading. The page is readable without the script.

use crate::markup::{escape, shorten};
use crate::plot::{CLUSTERS, Colour, Sign, class};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use std::fmt::Write;

const SCRIPT: &str = include_str!("script.js");
const STYLE: &str = include_str!("style.css");
/// Maximum length of a name in characters; longer names are shortened.
const LONGEST_NAME: usize = 60;

/// A page under construction.
pub struct Page {
    html: String,
}

impl Page {
    /// Starts an empty page.
    pub fn new(title: &str) -> Self {
        let style = format!("{STYLE}{}", colours());
        let (style_hash, script_hash) = (hash(&style), hash(SCRIPT));
        let (full, short) = (escape(title), escape(&shorten(title, 100)));
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" content=\"nysketch\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {script_hash}; \
             style-src {style_hash}; base-uri 'none'; form-action 'none'\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{full}</title>\
             <style>{style}</style></head><body>\n\
             <header><h1 title=\"{full}\">{short}</h1>\
             <div class=\"tools\"><button type=\"button\" id=\"theme\">Dark mode</button></div></header>\n<main>\n"
        );
        Page { html }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.push(&format!("<h2>{}</h2>\n", escape(text)));
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        self.push(&format!("<p>{}</p>\n", escape(text)));
    }

    /// Adds a paragraph in small print.
    pub fn note(&mut self, text: &str) {
        self.push(&format!("<p class=\"note\">{}</p>\n", escape(text)));
    }

    /// Adds HTML.
    pub fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Adds a table. Cells are plain text, and the first column contains names.
    pub fn table(&mut self, header: &[String], rows: &[Vec<String>]) {
        let head: String =
            header.iter().map(|c| format!("<th scope=\"col\">{}</th>", escape(c))).collect();
        let mut html = format!(
            "<div class=\"wide\" tabindex=\"0\"><table \
             class=\"sortable\"><thead><tr>{head}</tr></thead><tbody>\n"
        );
        for row in rows {
            html.push_str("<tr>");
            for (i, cell) in row.iter().enumerate() {
                let _ = match i {
                    0 => write!(html, "<th scope=\"row\">{}</th>", name(cell)),
                    _ => write!(html, "<td>{}</td>", name(cell)),
                };
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        self.push(&html);
    }

    /// Finishes the page and returns it.
    pub fn finish(mut self) -> String {
        self.push("</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>");
        self.push(SCRIPT);
        self.push("</script></body></html>\n");
        self.html
    }
}

/// Formats a name as HTML. A long name is shortened, and its tooltip shows it in full.
pub fn name(text: &str) -> String {
    let short = shorten(text, LONGEST_NAME);
    if short.ends_with('…') && short != text {
        format!("<span title=\"{}\">{}</span>", escape(text), escape(&short))
    } else {
        escape(&short)
    }
}

/// Returns the sign of a cluster as SVG, to be placed before its number.
pub fn sign(cluster: usize) -> String {
    format!(
        "<svg class=\"sign\" viewBox=\"-1.4 -1.4 2.8 2.8\" aria-hidden=\"true\"><path class=\"{}\" \
         d=\"{}\"/></svg>",
        class(cluster),
        Sign::of(cluster).path()
    )
}

/// Returns a source of the page's policy: the hash of a script or style.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Returns the cluster colours as CSS classes. Dark colours are lightened in dark mode.
fn colours() -> String {
    let light = |c: &Colour| 0.21 * f64::from(c.0) + 0.72 * f64::from(c.1) + 0.07 * f64::from(c.2);
    let on_dark = |c: &Colour| {
        let mix = |x: u8| (f64::from(x) + 0.4 * (255.0 - f64::from(x))).round() as u8;
        if light(c) < 105.0 { Colour(mix(c.0), mix(c.1), mix(c.2)) } else { *c }
    };
    let rule = |(i, c): (usize, &Colour)| {
        format!(".c{i}{{color:{c};color:light-dark({c},{})}}\n", on_dark(c))
    };
    CLUSTERS.iter().enumerate().map(rule).collect()
}
