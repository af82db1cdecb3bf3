"""Common words for text prompts: about one token each in most vocabularies."""

_TEXT = """\
about act add after again air also always an and answer any are as ask at back be been before between big book both
build but by call came can car care change city close come could country cut day did differ do does door down draw
each earth eat end even every eye face far feet few find first fish follow food for found four friend from get give go
good got great group grow had hand hard has have head hear help her here high him home horse house how if in is it
just keep know land large last learn left let letter life light like line little live long look low made main man mark
may me men might more most move much music must my near need never new next night no north now number of off often old
on once one only open or other our out over own page part people place plant play point put rain read real right river
room round run said same saw say school sea second see seem set she should show since small so some sound stand start
still stop story study such sun sure take tell than that the their them then there these they thing think this those
thought three through time to together too took tree try turn two under until up us use very walk want was watch water
way went were what when where which while white who why will with word work world would write year your
"""
WORDS = tuple(_TEXT.split())
