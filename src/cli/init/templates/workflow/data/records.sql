-- What the example looks up. It is executed once, when .loopctl/records.db does not exist yet.

CREATE TABLE "records" (
  id      TEXT PRIMARY KEY,
  subject TEXT NOT NULL,
  body    TEXT NOT NULL,
  status  TEXT NOT NULL CHECK (status IN ('open', 'closed'))
) STRICT;

INSERT INTO "records" VALUES
  ('1001', 'Charged twice', 'My card was charged two times on 2 March. Please give one of them back.', 'open'),
  ('1002', 'It does not work', 'It does not work. Please do something.', 'open'),
  ('1003', 'Thank you', 'All is well now, thank you.', 'closed');

CREATE TABLE decisions (
  record_id TEXT PRIMARY KEY,
  decision  TEXT NOT NULL,
  why       TEXT NOT NULL
) STRICT;
