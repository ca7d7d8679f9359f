//! Tables as Parquet, Arrow and npy files. A column has one type, and each row may have any value
//! of that type.

use super::draw::Rng;
use super::plans::WHO;
use super::{Case, Reading};
use arrow_array::builder::{FixedSizeListBuilder, Float64Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::*;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use nysketch::Plan;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Type {
    F64,
    F32,
    I64,
    U64,
    I8,
    Bool,
    Decimal,
    Dictionary,
    /// Vectors of any length, and vectors of two coordinates.
    List,
    Pair,
    /// Types of the column of persons.
    Text,
    Number,
    Day,
    /// A type that cannot be read as numbers.
    Time,
}

/// A value, before it is converted to the type of its column.
#[derive(Debug, Clone)]
enum Cell {
    Missing,
    Number(f64),
    Whole(i64),
    Vector(Vec<Option<f64>>),
    Text(String),
}

struct Column {
    name: String,
    kind: Type,
    bounds: (f64, f64),
}

fn columns_of(rng: &mut Rng, plan: &Plan) -> Vec<Column> {
    let private = plan.private.as_ref().unwrap();
    let mut columns: Vec<Column> = Vec::new();
    let mut vector = None;
    for (j, number) in plan.recipe.numbers.iter().enumerate() {
        let bounds = (private.low[j], private.high[j]);
        let mut kind = rng.pick(&[
            Type::F64,
            Type::F64,
            Type::F64,
            Type::F32,
            Type::I64,
            Type::U64,
            Type::I8,
            Type::Bool,
            Type::Decimal,
            Type::Dictionary,
        ]);
        if rng.once_in(40) {
            kind = Type::Time;
        }
        let mut name = number.input.clone();
        if name.starts_with("v[") {
            let as_vector =
                *vector.get_or_insert(rng.pick(&[None, Some(Type::List), Some(Type::Pair)]));
            if let Some(list) = as_vector {
                (name, kind) = ("v".into(), list);
            }
        }
        if columns.iter().all(|column| column.name != name) {
            columns.push(Column { name, kind, bounds });
        }
    }
    if plan.people().is_some() {
        let kind = rng.pick(&[Type::Text, Type::Number, Type::Day]);
        columns.push(Column { name: WHO.into(), kind, bounds: (0.0, 1.0) });
    }
    columns
}

/// Returns a random value. A new row belongs to a new person.
fn value(rng: &mut Rng, column: &Column, new: bool) -> Cell {
    if column.name == WHO {
        let id = if new { 100 } else { rng.below(9) as i64 };
        return match column.kind {
            _ if rng.once_in(20) => Cell::Missing,
            Type::Text => Cell::Text(format!("p{id}")),
            // A day out of range.
            Type::Day if rng.once_in(10) => Cell::Whole(i64::from(i32::MAX)),
            _ => Cell::Whole(id),
        };
    }
    let odd = rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    match column.kind {
        _ if rng.once_in(12) => Cell::Missing,
        Type::List | Type::Pair => {
            let length =
                if column.kind == Type::Pair { 2 } else { rng.pick(&[2, 2, 2, 2, 0, 1, 3]) };
            let coordinate = |_| Some(rng.number(column.bounds)).filter(|_| !rng.once_in(12));
            Cell::Vector((0..length).map(coordinate).collect())
        }
        Type::F64 | Type::F32 if rng.once_in(10) => Cell::Number(odd),
        Type::I64 | Type::U64 if rng.once_in(6) => {
            Cell::Whole(rng.pick(&[i64::MAX, i64::MIN, (1 << 53) + 1, -(1 << 53) - 1]))
        }
        _ => Cell::Number(rng.number(column.bounds)),
    }
}

/// Converts the values of a column to its type.
fn array(kind: Type, cells: &[Cell]) -> ArrayRef {
    let number = |cell: &Cell| match cell {
        Cell::Number(x) => Some(*x),
        Cell::Whole(x) => Some(*x as f64),
        _ => None,
    };
    let whole = |cell: &Cell| match cell {
        Cell::Number(x) => Some(*x as i64),
        Cell::Whole(x) => Some(*x),
        _ => None,
    };
    let vector = |cell: &Cell| match cell {
        Cell::Vector(v) => Some(v.clone()),
        _ => None,
    };
    match kind {
        Type::F64 => Arc::new(Float64Array::from_iter(cells.iter().map(number))),
        Type::F32 => {
            Arc::new(Float32Array::from_iter(cells.iter().map(|c| number(c).map(|x| x as f32))))
        }
        Type::I64 | Type::Number => Arc::new(Int64Array::from_iter(cells.iter().map(whole))),
        Type::U64 => {
            Arc::new(UInt64Array::from_iter(cells.iter().map(|c| whole(c).map(|x| x as u64))))
        }
        Type::I8 => {
            Arc::new(Int8Array::from_iter(cells.iter().map(|c| number(c).map(|x| x as i8))))
        }
        Type::Bool => {
            Arc::new(BooleanArray::from_iter(cells.iter().map(|c| number(c).map(|x| x > 0.5))))
        }
        Type::Decimal => {
            let scaled =
                cells.iter().map(|c| number(c).map(|x| (x.clamp(-1e12, 1e12) * 1000.0) as i128));
            Arc::new(Decimal128Array::from_iter(scaled).with_precision_and_scale(38, 3).unwrap())
        }
        Type::Dictionary => {
            let values = Arc::new(Float64Array::from_iter(cells.iter().map(number)));
            let keys = Int32Array::from_iter_values(0..cells.len() as i32);
            Arc::new(DictionaryArray::new(keys, values))
        }
        Type::List => {
            let mut lists = ListBuilder::new(Float64Builder::new());
            for cell in cells {
                let vector = vector(cell);
                vector.iter().flatten().for_each(|x| lists.values().append_option(*x));
                lists.append(vector.is_some());
            }
            Arc::new(lists.finish())
        }
        Type::Pair => {
            let mut pairs = FixedSizeListBuilder::new(Float64Builder::new(), 2);
            for cell in cells {
                let vector = vector(cell);
                let empty = vec![None, None];
                vector
                    .as_ref()
                    .unwrap_or(&empty)
                    .iter()
                    .for_each(|x| pairs.values().append_option(*x));
                pairs.append(vector.is_some());
            }
            Arc::new(pairs.finish())
        }
        Type::Text => {
            let text = |cell: &Cell| match cell {
                Cell::Text(text) => Some(text.clone()),
                _ => None,
            };
            Arc::new(StringArray::from_iter(cells.iter().map(text)))
        }
        Type::Day => {
            Arc::new(Date32Array::from_iter(cells.iter().map(|c| whole(c).map(|x| x as i32))))
        }
        Type::Time => Arc::new(TimestampMillisecondArray::from_iter(cells.iter().map(whole))),
    }
}

/// The tables of a case, as rows of cells.
struct Tables {
    columns: Vec<Column>,
    before: Vec<Vec<Cell>>,
    after: Vec<Vec<Cell>>,
    alone: Vec<Vec<Cell>>,
}

fn tables(rng: &mut Rng, plan: &Plan) -> Tables {
    let columns = columns_of(rng, plan);
    let row = |rng: &mut Rng, new| columns.iter().map(|c| value(rng, c, new)).collect::<Vec<_>>();
    let before: Vec<Vec<Cell>> = (0..rng.rows()).map(|_| row(rng, false)).collect();
    let (mut after, mut alone) = (before.clone(), Vec::new());
    for _ in 0..plan.people().map_or(1, |people| 1 + rng.below(2 * people.rows as usize)) {
        let new = row(rng, true);
        alone.push(new.clone());
        after.insert(rng.below(after.len() + 1), new);
    }
    Tables { columns, before, after, alone }
}

fn batch(columns: &[Column], rows: &[Vec<Cell>]) -> RecordBatch {
    let column = |(j, column): (usize, &Column)| {
        let cells: Vec<Cell> = rows.iter().map(|row| row[j].clone()).collect();
        (column.name.clone(), array(column.kind, &cells), true)
    };
    RecordBatch::try_from_iter_with_nullable(columns.iter().enumerate().map(column)).unwrap()
}

/// Returns a case with one file for each table.
fn case(
    rng: &mut Rng,
    plan: &Plan,
    what: String,
    name: &str,
    write: impl Fn(&RecordBatch) -> Vec<u8>,
) -> Case {
    let Tables { columns, before, after, alone } = tables(rng, plan);
    let file = |rows: &[Vec<Cell>]| vec![(name.to_string(), write(&batch(&columns, rows)))];
    let kinds: Vec<_> = columns.iter().map(|c| (&c.name, c.kind)).collect();
    Case {
        what: format!("{what} ({name}, {kinds:?})"),
        reading: Reading { threads: 1 + rng.below(2), ..Reading::default() },
        before: file(&before),
        after: file(&after),
        alone: file(&alone),
        guessed_otherwise: false,
    }
}

pub fn parquet(rng: &mut Rng, plan: &Plan, what: String) -> Case {
    let rows = 1 + rng.below(80);
    case(rng, plan, what, "x.parquet", |batch| {
        let properties =
            WriterProperties::builder().set_max_row_group_row_count(Some(rows)).build();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.into_inner().unwrap()
    })
}

pub fn arrow(rng: &mut Rng, plan: &Plan, what: String) -> Case {
    let (stream, rows) = (rng.once_in(2), 1 + rng.below(80));
    case(rng, plan, what, "x.arrow", |batch| {
        let schema = batch.schema();
        let parts = (0..batch.num_rows()).step_by(rows);
        let parts = parts.map(|at| batch.slice(at, rows.min(batch.num_rows() - at)));
        let mut out = Vec::new();
        // A dictionary must not change from batch to batch.
        if stream && batch.columns().iter().all(|c| c.as_any_dictionary_opt().is_none()) {
            let mut writer = StreamWriter::try_new(&mut out, &schema).unwrap();
            parts.for_each(|part| writer.write(&part).unwrap());
            writer.finish().unwrap();
        } else {
            let mut writer = FileWriter::try_new(&mut out, &schema).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
        }
        out
    })
}

/// Returns a case of arrays with the plan's columns in their order.
pub fn npy(rng: &mut Rng, plan: &Plan, what: String) -> Case {
    let private = plan.private.as_ref().unwrap();
    let d = private.low.len();
    let kind = rng.pick(&["<f8", "<f8", "<f4", "<i8", ">i2"]);
    let fortran = rng.once_in(3);
    let number = |rng: &mut Rng, j: usize| match rng.below(15) {
        0 => rng.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        _ => rng.number((private.low[j], private.high[j])),
    };
    let row = |rng: &mut Rng| (0..d).map(|j| number(rng, j)).collect::<Vec<f64>>();
    let before: Vec<Vec<f64>> = (0..rng.rows()).map(|_| row(rng)).collect();
    let mut after = before.clone();
    let alone = vec![row(rng)];
    after.insert(rng.below(after.len() + 1), alone[0].clone());
    let file = |rows: &[Vec<f64>]| {
        let text = format!(
            "{{'descr': '{kind}', 'fortran_order': {}, 'shape': ({}, {d}), }}",
            if fortran { "True" } else { "False" },
            rows.len()
        );
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{text:117}\n").bytes());
        for at in 0..rows.len() * d {
            let x =
                if fortran { rows[at % rows.len()][at / rows.len()] } else { rows[at / d][at % d] };
            match kind {
                "<f8" => bytes.extend(x.to_le_bytes()),
                "<f4" => bytes.extend((x as f32).to_le_bytes()),
                "<i8" => bytes.extend((x as i64).to_le_bytes()),
                _ => bytes.extend((x as i16).to_be_bytes()),
            }
        }
        vec![("x.npy".to_string(), bytes)]
    };
    Case {
        what: format!("{what} (npy, {kind})"),
        reading: Reading { threads: 1 + rng.below(2), ..Reading::default() },
        before: file(&before),
        after: file(&after),
        alone: file(&alone),
        guessed_otherwise: false,
    }
}
