//! Errors for programs: a code, and fields that name what was wrong.
//!
//! Codes and fields are part of the interface; the wording of a message is not. `--json` prints
//! them, exceptions of Python carry them, and tests assert them.

use super::{Error, FormatError, Place};
use serde_json::{Map, Value, json};

impl Error {
    /// Returns the code of the error, which names its variant.
    ///
    /// ```
    /// use nysketch_core::Table;
    /// let error = Table::unnamed(2, vec![1.0]).unwrap_err();
    /// assert_eq!(error.code(), "parameter");
    /// assert!(error.fields().contains_key("parameter"));
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Error::NonFinite { .. } => "non_finite",
            Error::OutOfRange { .. } => "out_of_range",
            Error::BadWeight { .. } => "bad_weight",
            Error::NegativeWeight { .. } => "negative_weight",
            Error::NoGroup { .. } => "no_group",
            Error::TooManyGroups { .. } => "too_many_groups",
            Error::TooMuchWork { .. } => "too_much_work",
            Error::NoRows { .. } => "no_rows",
            Error::TooManyRows { .. } => "too_many_rows",
            Error::TooFewRows { .. } => "too_few_rows",
            Error::BadSpread { .. } => "bad_spread",
            Error::NeedsSketch { .. } => "needs_sketch",
            Error::Parameter { .. } => "parameter",
            Error::PlanMismatch { .. } => "plan_mismatch",
            Error::FoldMismatch { .. } => "fold_mismatch",
            Error::NoFolds { .. } => "no_folds",
            Error::EmptyFolds { .. } => "empty_folds",
            Error::AnotherPlan { .. } => "another_plan",
            Error::Impossible { .. } => "impossible",
            Error::Format(error) => error.code(),
            Error::NotOnDevice { .. } => "not_on_device",
            Error::Device(_) => "device",
            Error::WrongDevice { .. } => "wrong_device",
            Error::Masking(_) => "masking",
            Error::Ledger(_) => "ledger",
            Error::MissingSums { .. } => "missing_sums",
            Error::TooManyComponents { .. } => "too_many_components",
            Error::TooFewCells { .. } => "too_few_cells",
            Error::NoRoom { .. } => "no_room",
            Error::BadModel { .. } => "bad_model",
            Error::NoConvergence { .. } => "no_convergence",
            Error::Source(_) => "source",
            Error::Randomness(_) => "randomness",
            Error::NotPrivate => "not_private",
            Error::SensitivityContradicted { .. } => "sensitivity_contradicted",
            Error::TooLittleNoise { .. } => "too_little_noise",
            Error::Released { .. } => "released",
            Error::PeopleSubtracted { .. } => "people_subtracted",
            Error::Cancelled => "cancelled",
        }
    }

    /// Returns the fields of the error by name. Numbers that JSON cannot hold are null.
    pub fn fields(&self) -> Map<String, Value> {
        let fields = match self {
            Error::NonFinite { at, value }
            | Error::BadWeight { at, value, .. }
            | Error::NegativeWeight { at, value } => with_place(at, json!({ "value": value })),
            Error::OutOfRange { at, value, centre, limit } => {
                with_place(at, json!({ "value": value, "centre": centre, "limit": limit }))
            }
            Error::NoGroup { at } => with_place(at, json!({})),
            Error::TooManyGroups { column, limit } => json!({ "column": column, "limit": limit }),
            Error::TooMuchWork { what, operations, gigabytes, factor, .. } => json!({
                "what": what, "operations": operations, "gigabytes": gigabytes, "factor": factor,
            }),
            Error::NoRows { skipped } => json!({ "skipped": skipped }),
            Error::TooManyRows { rows, most } => {
                json!({ "rows": rows.to_string(), "limit": most.to_string() })
            }
            Error::TooFewRows { landmarks, rows } => {
                json!({ "landmarks": landmarks, "rows": rows })
            }
            Error::BadSpread { column, spread, low, high } => {
                json!({ "column": column, "spread": spread, "low": low, "high": high })
            }
            Error::NeedsSketch { option, got } => json!({ "option": option, "found": got }),
            Error::Parameter { name, expected, got } => {
                json!({ "parameter": name.trim_matches('`'), "expected": expected, "found": got })
            }
            Error::PlanMismatch { left, right } => json!({ "left": left, "right": right }),
            Error::FoldMismatch { action, left, right } => {
                json!({ "action": action, "left": left, "right": right })
            }
            Error::NoFolds { what } => json!({ "what": what }),
            Error::EmptyFolds { what, empty, folds } => {
                json!({ "what": what, "empty": empty, "folds": folds })
            }
            Error::AnotherPlan { sketch, plan } => json!({ "sketch": sketch, "plan": plan }),
            Error::Impossible { action, what, how } => {
                json!({ "action": action, "what": what, "how": how })
            }
            Error::NotOnDevice { reason } => json!({ "reason": reason }),
            Error::WrongDevice { name } => json!({ "device": name }),
            Error::MissingSums { task, what } => json!({ "task": task, "sums": what }),
            Error::TooManyComponents { k, available, what } => {
                json!({ "k": k, "available": available, "what": what })
            }
            Error::TooFewCells { k, available } => json!({ "k": k, "available": available }),
            Error::NoRoom { k, separation, radius } => {
                json!({ "k": k, "separation": separation, "radius": radius })
            }
            Error::NoConvergence { what, size } => json!({ "what": what, "size": size }),
            Error::SensitivityContradicted { mechanism, claimed, bound } => {
                json!({ "mechanism": mechanism, "claimed": claimed, "bound": bound })
            }
            Error::TooLittleNoise { mechanism, noise } => {
                json!({ "mechanism": mechanism, "variance": noise })
            }
            Error::Released { action } => json!({ "action": action }),
            Error::PeopleSubtracted { column } => json!({ "column": column }),
            Error::Format(_)
            | Error::Device(_)
            | Error::Masking(_)
            | Error::Ledger(_)
            | Error::BadModel { .. }
            | Error::Source(_)
            | Error::Randomness(_)
            | Error::NotPrivate
            | Error::Cancelled => json!({}),
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// Adds the file, the row and the column of a value.
fn with_place(at: &Place, mut fields: Value) -> Value {
    fields["file"] = at.file.clone().into();
    fields["row"] = at.row.into();
    fields["column"] = at.column.clone().into();
    fields
}

impl FormatError {
    /// Returns the code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self {
            FormatError::Container(_) | FormatError::NoMetadata => "not_a_file",
            FormatError::Version { .. } => "format_version",
            FormatError::Section(_) => "unknown_section",
            FormatError::Kind { .. } => "wrong_kind",
            FormatError::Masked => "masked",
            FormatError::Checksum { .. }
            | FormatError::Metadata(_)
            | FormatError::SectionDigest { .. }
            | FormatError::MissingTensor(_)
            | FormatError::UnexpectedTensor(_)
            | FormatError::Shape { .. }
            | FormatError::Value(_)
            | FormatError::Fingerprint { .. }
            | FormatError::NotCanonical => "damaged",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_row_has_its_place() {
        let at = Place { file: "day1.csv".into(), row: 12, column: "price".into() };
        let error = Error::NonFinite { at, value: f64::INFINITY };
        let fields = Value::Object(error.fields());
        let expected = json!({ "file": "day1.csv", "row": 12, "column": "price", "value": null });
        assert_eq!((error.code(), fields), ("non_finite", expected));
    }

    #[test]
    fn a_parameter_is_named_without_spelling() {
        let error = Error::parameter("`landmarks`", "at least 1", 0);
        assert_eq!(error.fields()["parameter"], "landmarks");
    }
}
