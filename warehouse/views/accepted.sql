-- Which measurements may be compared?
CREATE VIEW accepted AS
SELECT * FROM standing WHERE verdict = 'accepted' AND is_control IS NOT TRUE;
