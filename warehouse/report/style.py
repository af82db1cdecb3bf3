"""How the page looks: the reader's own light or dark."""

STYLE = """
:root{color-scheme:light dark;--good:light-dark(#15803d,#4ade80);--doubt:light-dark(#a16207,#facc15);
--bad:light-dark(#b91c1c,#f87171);--line:light-dark(#ddd,#333);--soft:light-dark(#666,#999)}
body{font:14px/1.45 system-ui,sans-serif;max-width:1200px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0}
th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top}
th{font-weight:600;vertical-align:bottom}.number{text-align:right;font-variant-numeric:tabular-nums}
.sentence{min-width:14rem}.missing{color:var(--soft)}.accepted,.pass{color:var(--good)}
.suspect,.unchecked,.warn,.warning,.not-checkable,.not-run{color:var(--doubt)}
.rejected,.failed,.fail,.critical{color:var(--bad);font-weight:600}
figure{margin:1rem 0}svg{max-width:760px;width:100%;font:12px system-ui,sans-serif}
svg text{fill:currentColor}.bar{fill:light-dark(#2563eb,#60a5fa)}.whisker{stroke:currentColor;stroke-width:2}
"""
