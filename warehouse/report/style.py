"""How the page looks: the reader's own light or dark."""

STYLE = """
:root{color-scheme:light dark;--good:light-dark(#15803d,#4ade80);--doubt:light-dark(#a16207,#facc15);
--bad:light-dark(#b91c1c,#f87171);--line:light-dark(#ddd,#333);--soft:light-dark(#666,#999);
--ink:light-dark(#1a1a1a,#eee);--paper:light-dark(#fff,#121212);--mark:light-dark(#2563eb,#60a5fa)}
body{color:var(--ink);background:var(--paper);font:14px/1.45 system-ui,sans-serif;
max-width:1200px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0}
th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top}
th{font-weight:600;vertical-align:bottom}.number{text-align:right;font-variant-numeric:tabular-nums}
.sentence{min-width:14rem}.missing{color:var(--soft)}.accepted,.pass,.gain{color:var(--good)}
.suspect,.unchecked,.warn,.warning,.not-checkable,.not-run{color:var(--doubt)}
.rejected,.failed,.fail,.critical,.loss{color:var(--bad);font-weight:600}
figure{margin:1rem 0}.chart svg{max-width:100%;height:auto}.bars{width:760px;font:12px system-ui,sans-serif}
.bars text{fill:currentColor}.bar{fill:var(--mark)}.whisker{stroke:currentColor;stroke-width:2}
a{color:var(--mark)}:focus-visible{outline:3px solid var(--mark);outline-offset:2px}
nav a,nav b{margin-right:1rem}.line{font-size:1.1rem}.chart{width:100%;min-height:170px}
.part>summary{color:inherit;margin-top:1rem}.part>summary h2{display:inline}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:0 2rem}
.events{overflow-wrap:anywhere}
figcaption{font-weight:600;overflow-wrap:anywhere}summary{cursor:pointer;color:var(--soft)}pre{overflow-x:auto}
.more{color:var(--soft);font-size:.9rem}.more button{font:inherit}.more p{margin:.2rem 0}
.more>a,.more>details{margin-right:1rem}.more>details{display:inline-block;vertical-align:top}.more>details[open]{display:block}
@media print{:root{color-scheme:light}nav,button,a[download],.more>details{display:none}
body{max-width:none;margin:0}figure,tr,li{break-inside:avoid}h2,h3,figcaption{break-after:avoid}
.wide{overflow:visible}table{font-size:.7rem}th,td{padding:.15rem .3rem}.chart{min-height:0}
.panels{grid-template-columns:1fr 1fr}}
@page{size:landscape;margin:12mm}
"""
