//! Compares a day with other days, and monitors days in order.

use super::metrics::Metrics;
use super::outcome::{Outcome, check_columns, check_outputs, paths};
use super::thresholds::Thresholds;
use crate::args::{Common, Diff};
use crate::commands::files::{read_sketch, sketch_files, stem};
use crate::output::{Usage, count, name, note, percent, result, short, thousands};
use anyhow::{Context, Result};
use nysketch::Sketch;
use nysketch::drift::{Comparison, Days, LEAST_ROWS, Reason, Unusual, Watched};
use nysketch_report::plot::{self, DayPoint, DaysChart};
use nysketch_report::words::describe::one_line;
use serde_json::json;
use std::path::{Path, PathBuf};

/// `--baseline DAYS… TODAY`: the last file is today, and all others are earlier days.
pub fn unusual(
    args: &Diff,
    first: &Path,
    thresholds: &Thresholds,
    common: &Common,
) -> Result<(Outcome, Result<()>)> {
    let Some((today, more)) = args.sketches.split_last() else {
        return Err(Usage("--baseline DAYS needs the sketch of today after it".into()).into());
    };
    let given: Vec<PathBuf> =
        std::iter::once(first.to_path_buf()).chain(more.iter().cloned()).collect();
    let mut days = sketch_files(&given, None, common)?;
    let all = days.len();
    days.retain(|day| !nysketch::file::same(day, today));
    if days.len() < all {
        note(common, &format!("{} is compared with the other days", today.display()));
    }
    if thresholds.same_weekday {
        let wanted = weekday_of(today)?;
        let mut kept = Vec::new();
        for day in days {
            if weekday_of(&day)? == wanted {
                kept.push(day);
            }
        }
        days = kept;
    }
    check_outputs(args, paths(&days).chain([today.as_path()]), common)?;
    let sketch = read_sketch(today)?;
    let comparison = Comparison::new(sketch.plan())?;
    let baseline = read_days(&comparison, &sketch, today, &days, common)?;
    let level = thresholds.params.level;
    let found = baseline.compare(&stem(today), &sketch, level);
    let found = found.with_context(|| today.display().to_string())?;
    if found.least_p_value > level + 1e-12 {
        note(
            common,
            &format!(
                "{} cannot show a p-value below {}: no day will be called unusual at {level}; {} \
                 would",
                count(found.days as u64, "day"),
                short(found.least_p_value),
                count((1.0 / level).ceil() as u64 - 1, "day")
            ),
        );
    }
    if let Some(file) = &args.plot {
        let points = found.each.iter().map(|d| DayPoint {
            name: d.name.clone(),
            value: d.score,
            stands_out: false,
            title: match d.moved {
                Some(moved) => {
                    format!("{}\n{}\nmoved {}", d.name, count(d.rows, "row"), percent(moved))
                }
                None => format!("{}\n{}", d.name, count(d.rows, "row")),
            },
        });
        let mut points: Vec<DayPoint> = points.collect();
        if let Some(last) = points.last_mut() {
            last.stands_out = found.unusual;
        }
        let axis = "how unusual, in spreads of the days";
        let title = format!("{} among {}", stem(today), count(found.days as u64, "day"));
        let chart =
            DaysChart { points: &points, others: found.days, axis, title: &title, threshold: None };
        plot::write(file, &plot::days(&chart))?;
    }
    let mut metrics = Metrics::default();
    metrics.unusual(&today.display().to_string(), &found);
    metrics.write(args)?;
    let mut json = serde_json::to_value(&found)?;
    json["file"] = name(today);
    json["plot"] = json!(args.plot.as_deref().map(name));
    let printed = result(common, &json, &unusual_text(today, &found, thresholds));
    Ok((Outcome::changed(found.unusual), printed))
}

/// Reads days in the given order and compares their plans with that of `sketch`.
fn read_days<'a>(
    comparison: &'a Comparison,
    sketch: &Sketch,
    of: &Path,
    files: &[PathBuf],
    common: &Common,
) -> Result<Days<'a>> {
    let mut days = Days::new(comparison);
    for file in files {
        let day = read_sketch(file)?;
        check_columns(sketch, &day, of, file)?;
        if day.weight() < LEAST_ROWS {
            let rows = count(day.counted(), "row");
            note(common, &format!("{} is left out: it has {rows}", file.display()));
            continue;
        }
        days.push(stem(file), &day)
            .with_context(|| format!("{} and {}", of.display(), file.display()))?;
    }
    Ok(days)
}

fn unusual_text(today: &Path, found: &Unusual, thresholds: &Thresholds) -> String {
    let others = &found.each[..found.days];
    let (fewest, most) =
        others.iter().fold((u64::MAX, 0), |(l, h), d| (l.min(d.rows), h.max(d.rows)));
    let weekday = if thresholds.same_weekday { " of the same day of the week" } else { "" };
    let mut text = format!(
        "today     {}, {}\nbaseline  {}{weekday}, {} to {} rows each\n\n",
        today.display(),
        count(found.rows, "row"),
        count(found.days as u64, "day"),
        thousands(fewest),
        thousands(most)
    );
    let all = found.days + 1;
    let as_unusual = (found.p_value * all as f64).round() as usize;
    let rank = match as_unusual {
        1 => format!("the most unusual of {all} days"),
        n => format!("{n} of {all} days are as unusual or more"),
    };
    let verdict = if found.unusual { "an unusual day" } else { "a day like others" };
    text.push_str(&format!(
        "p-value  {}: {verdict}, {rank} (level {}; the smallest p-value of {} days is {})\n",
        short(found.p_value),
        found.level,
        found.days,
        short(found.least_p_value)
    ));
    if let (Some(moved), Some([middle, most])) = (found.moved, found.others_moved) {
        text.push_str(&format!(
            "moved    {} of today's rows compared with the other days; for those days, {} in the \
             median and {} at most\n",
            percent(moved),
            percent(middle),
            percent(most)
        ));
    }
    let reasons: Vec<&Reason> = found.reasons.iter().take(thresholds.top).collect();
    if !reasons.is_empty() {
        let width = reasons.iter().map(|r| r.what.chars().count()).max().unwrap_or(0).max(4);
        text.push_str(&format!(
            "\n{:width$} {:>12} {:>12} {:>12} {:>11}\n",
            "what", "today", "median day", "deviation", "deviations"
        ));
        for r in reasons {
            let value = |x: f64| if r.share { percent(x) } else { short(x) };
            text.push_str(&format!(
                "{:width$} {:>12} {:>12} {:>12} {:>+11.1}\n",
                one_line(&r.what),
                value(r.value),
                value(r.median),
                value(r.deviation),
                r.deviations
            ));
        }
    }
    text
}

/// `--watch DAYS…`: days in the given order.
pub fn watch(
    args: &Diff,
    thresholds: &Thresholds,
    common: &Common,
) -> Result<(Outcome, Result<()>)> {
    let files = sketch_files(&args.sketches, None, common)?;
    check_outputs(args, paths(&files), common)?;
    let Some(first) = files.first() else {
        return Err(Usage("--watch needs sketches".into()).into());
    };
    let sketch = read_sketch(first)?;
    let comparison = Comparison::new(sketch.plan())?;
    let days = read_days(&comparison, &sketch, first, &files, common)?;
    let groups = if thresholds.same_weekday {
        Some(files.iter().map(|f| weekday_of(f)).collect::<Result<Vec<usize>>>()?)
    } else {
        None
    };
    let params = thresholds.params;
    if groups.as_ref().is_some_and(|g| g.len() != days.len()) {
        return Err(Usage(
            "--same-weekday needs rows on every day: leave out the empty ones".into(),
        )
        .into());
    }
    let found = days.watch(groups.as_deref(), params.level, params.seed)?;
    if let Some(file) = &args.plot {
        let points: Vec<DayPoint> = found
            .days
            .iter()
            .map(|d| DayPoint {
                name: d.name.clone(),
                value: d.evidence.max(1e-3).log10(),
                stands_out: d.evidence >= 1.0 / params.level,
                title: format!(
                    "{}\n{}\nevidence {}",
                    d.name,
                    count(d.rows, "row"),
                    short(d.evidence)
                ),
            })
            .collect();
        let chart = DaysChart {
            points: &points,
            others: points.len(),
            axis: "log₁₀ of the evidence",
            title: "Evidence for a change",
            threshold: Some((-params.level.log10(), format!("alarm: 1/{}", params.level))),
        };
        plot::write(file, &plot::days(&chart))?;
    }
    let mut metrics = Metrics::default();
    metrics.watched(&found);
    metrics.write(args)?;
    let mut json = serde_json::to_value(&found)?;
    json["plot"] = json!(args.plot.as_deref().map(name));
    let printed = result(common, &json, &watched_text(&found, thresholds));
    Ok((Outcome::changed(found.alarm.is_some()), printed))
}

fn watched_text(found: &Watched, thresholds: &Thresholds) -> String {
    let width = found.days.iter().map(|d| d.name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{:width$} {:>12} {:>10} {:>10} {:>12}\n",
        "day", "rows", "moved", "p-value", "evidence"
    );
    for d in &found.days {
        text.push_str(&format!(
            "{:width$} {:>12} {:>10} {:>10} {:>12}{}\n",
            one_line(&d.name),
            thousands(d.rows),
            d.moved.map_or("-".into(), percent),
            d.p_value.map_or("-".into(), short),
            short(d.evidence),
            if found.alarm.as_ref() == Some(&d.name) { "  ALARM" } else { "" }
        ));
    }
    let limit = short(1.0 / found.level);
    text.push('\n');
    if found.days.iter().all(|d| d.p_value.is_none()) {
        text.push_str("no day could be ranked: each needs four days of its kind before it\n");
    }
    match (&found.alarm, &found.began) {
        (Some(alarm), Some(began)) => text.push_str(&format!(
            "alarm on {}: the evidence exceeded {limit}; the change most likely began on {}\n",
            one_line(alarm),
            one_line(began)
        )),
        (Some(alarm), None) => {
            text.push_str(&format!("alarm on {}: the evidence exceeded {limit}\n", one_line(alarm)))
        }
        (None, _) => text.push_str(&format!("no alarm: the evidence stayed below {limit}\n")),
    }
    text.push_str(&format!(
        "exchangeable days raise a false alarm with a probability of at most {} %, however often \
         one looks\n",
        short(100.0 * found.level)
    ));
    if let (Some(r), Some(p)) = (found.autocorrelation, found.autocorrelation_p_value)
        && p <= 0.05
        && r >= 0.05
    {
        let week = if thresholds.same_weekday { "" } else { "; --same-weekday takes out the week" };
        text.push_str(&format!(
            "these days are not exchangeable: neighbours are alike (correlation {r:.2}, p-value \
             {}), so an alarm may mean slow change or seasons{week}\n",
            short(p)
        ));
    }
    text
}

/// Returns the weekday, from 0, of the date in a file name such as 2026-02-01 or 20260201.
fn weekday_of(path: &Path) -> Result<usize> {
    let name = stem(path);
    let digits: Vec<char> = name.chars().collect();
    let number = |from: usize, to: usize| -> Option<i64> {
        digits.get(from..to)?.iter().collect::<String>().parse().ok()
    };
    let dash = |at: usize| digits.get(at) == Some(&'-');
    let at = |i: usize| {
        if dash(i + 4) && dash(i + 7) {
            Some((number(i, i + 4)?, number(i + 5, i + 7)?, number(i + 8, i + 10)?))
        } else {
            Some((number(i, i + 4)?, number(i + 4, i + 6)?, number(i + 6, i + 8)?))
        }
    };
    let valid = |date: &(i64, i64, i64)| {
        date.0 >= 1583 && (1..=12).contains(&date.1) && (1..=31).contains(&date.2)
    };
    let date = (0..digits.len()).filter_map(at).find(valid);
    let Some((year, month, day)) = date else {
        let file = path.display();
        return Err(Usage(format!(
            "--same-weekday needs a date in every name, as in 2026-02-01.nys; {file} has none"
        ))
        .into());
    };
    // Sakamoto's formula, in which Sunday is 0.
    const SHIFT: [i64; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let y = if month < 3 { year - 1 } else { year };
    Ok(((y + y / 4 - y / 100 + y / 400 + SHIFT[month as usize - 1] + day) % 7) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekdays_are_those_of_the_calendar() {
        for (name, day) in [("2026-11-18", 3), ("flights-20010101", 1), ("d_2000-02-29.x", 2)] {
            assert_eq!(weekday_of(Path::new(&format!("{name}.nys"))).unwrap(), day, "{name}");
        }
        assert!(weekday_of(Path::new("monday.nys")).is_err());
        assert!(weekday_of(Path::new("2026-13-01.nys")).is_err());
    }
}
