-- Which measurements may be compared?
CREATE VIEW accepted AS
SELECT * FROM measurements WHERE verdict = 'accepted';
