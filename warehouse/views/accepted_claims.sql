-- Which imported claims may be compared?
CREATE VIEW accepted_claims AS
SELECT * FROM standing_claims WHERE verdict = 'accepted';
