-- Which measurements count in series: accepted ones, and those that nothing but noise on their host makes suspect?
CREATE VIEW counted AS
SELECT * FROM standing WHERE {{ counts }};
