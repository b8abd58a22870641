//! Long texts that many runs share: kept once, however many runs name them.

use rusqlite::{Connection, OptionalExtension};

use super::database_errors::RequestError;
use crate::journal::StoreError;
use loopctl_engine::blob::Blob;
use loopctl_engine::digest::{Digest, Sha256};

/// Keeps the texts of a run, in the open transaction. A text that is there already is not written again; texts
/// are compared by their content, not by their digest alone.
pub(super) fn keep(connection: &Connection, run: i64, texts: &[Blob]) -> rusqlite::Result<()> {
    for text in texts {
        let digest = text.sha256().to_string();
        let there = connection
            .prepare_cached("SELECT id FROM texts WHERE digest = ?1 AND text = ?2")?
            .query_row((&digest, &**text), |row| row.get::<_, i64>(0))
            .optional()?;
        let id = match there {
            Some(id) => id,
            None => connection
                .prepare_cached("INSERT INTO texts (digest, text) VALUES (?1, ?2)")?
                .insert((&digest, &**text))?,
        };
        connection.prepare_cached("INSERT OR IGNORE INTO run_texts (run, text) VALUES (?1, ?2)")?.execute([run, id])?;
    }
    Ok(())
}

/// The texts of a run, each checked against its digest.
pub(super) fn of_run(connection: &Connection, run_id: &str) -> Result<Vec<Blob>, RequestError> {
    let damaged = |what: &str| RequestError::Refused(StoreError::Corrupt(format!("run {run_id}: {what}")));
    let row: i64 = connection
        .prepare_cached("SELECT id FROM runs WHERE run_id = ?1")?
        .query_row([run_id], |row| row.get(0))
        .optional()?
        .ok_or_else(|| StoreError::NoSuchRun(run_id.to_owned()))?;
    let mut query = connection.prepare_cached(
        "SELECT texts.digest, texts.text FROM run_texts LEFT JOIN texts ON texts.id = run_texts.text WHERE run = ?1",
    )?;
    let mut rows = query.query([row])?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let missing = |_| damaged("a text of its documents or its prompt is missing");
        let (digest, text): (String, String) = (row.get(0).map_err(missing)?, row.get(1).map_err(missing)?);
        let text = Blob::new(text);
        if text.sha256().to_string() != digest {
            return Err(damaged("a text of its documents or its prompt is not what was written"));
        }
        texts.push(text);
    }
    Ok(texts)
}

/// Gives the texts of an older store, which kept them by a digest that does not protect against forgery, their SHA-256; in
/// the open transaction. A text that is not what was written keeps what it has, and is reported when it is read.
pub(super) fn name_by_sha256(connection: &Connection) -> rusqlite::Result<()> {
    let mut next = connection.prepare("SELECT id, digest, text FROM texts WHERE id > ?1 ORDER BY id LIMIT 1")?;
    let mut update = connection.prepare("UPDATE texts SET digest = ?1 WHERE id = ?2")?;
    let mut last = i64::MIN;
    loop {
        let row = next.query_row([last], |row| {
            let text = row.get_ref(2)?.as_str().ok().and_then(|text| {
                let is_sound = row.get_ref(1).ok()?.as_str().ok()? == Digest::of(text).to_string();
                is_sound.then(|| Sha256::of(text).to_string())
            });
            Ok((row.get::<_, i64>(0)?, text))
        });
        let Some((id, sha256)) = row.optional()? else { return Ok(()) };
        if let Some(sha256) = sha256 {
            update.execute((sha256, id))?;
        }
        last = id;
    }
}
