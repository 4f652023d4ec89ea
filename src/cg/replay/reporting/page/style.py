"""How the page looks: light or dark as the reader's system is, readable from a phone to a wide screen."""

STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#556070;--line:#d9dee5;--page:#fff;--panel:#f4f7fa;--accent:#1f6f4a;
--read:#4a90d9;--write:#e08a3c;--fresh:#c0504d;--output:#7f9c5a;--aside:#8e6bbf;--held:#bcd7ee;--cold:#f0d9c4;--late:#c0392b;
--good:#3f8f5f;--bad:#b8514a;--l0:#7a8594;--l1:#2471b8;--l2:#c2681a;--l3:#7d56b3;--l4:#3f8f5f;--l5:#b8514a}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3afbd;--line:#37404b;--page:#14181d;--panel:#1c2229;--accent:#6fcf9f;
--held:#2d4f6e;--cold:#5a4330;--late:#ff7b6b;--read:#5b9fe3;--l0:#9aa5b3;--l1:#6db3f2;--l2:#f0a35e;--l3:#b795e6;--l4:#6fcf9f;
--l5:#f08c84}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1280px;padding:1.5rem 1rem 4rem;color:var(--ink);background:var(--page);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:break-word}
h1{font-size:1.2rem;margin:0 0 .8rem;color:var(--soft);font-weight:600}
h2{font-size:1.25rem;margin:2.6rem 0 .5rem}h3{font-size:1rem;margin:1.4rem 0 .2rem}
p,li{margin:.3rem 0 .7rem;max-width:74ch}.soft{color:var(--soft)}
.answer{background:var(--panel);border:1px solid var(--line);border-left:5px solid var(--accent);border-radius:8px;padding:1rem 1.2rem}
.answer h2{font-size:1.5rem;line-height:1.3;margin:0 0 .6rem}.answer p:last-child{margin-bottom:0}
pre{background:var(--page);border:1px solid var(--line);border-radius:6px;padding:.6rem .9rem;margin:.3rem 0 .9rem;overflow-x:auto;
font:14px/1.5 ui-monospace,SFMono-Regular,Consolas,monospace}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.8rem;margin:1.2rem 0}
dl div{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem}
dt{color:var(--soft);font-size:.85rem}dd{margin:0;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto;margin:.4rem 0 .8rem}.wide:focus-visible,summary:focus-visible{outline:2px solid var(--read);outline-offset:2px}
table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums;white-space:nowrap}
caption{text-align:left;color:var(--soft);font-size:.86rem;padding:0 0 .3rem}
caption span{display:block;white-space:normal;max-width:min(74ch,85vw)}
th,td{padding:.32rem .6rem;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;padding-left:0;max-width:min(46ch,52vw);overflow:hidden;text-overflow:ellipsis}
thead th{color:var(--soft);font-weight:600}tbody th{font-weight:500}tr.late td,tr.late th{color:var(--late)}
tr.chosen{background:var(--panel);font-weight:600}
details{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.6rem 1rem;margin:.7rem 0}
details details{background:var(--page)}summary{cursor:pointer;font-weight:600}summary span{color:var(--soft);font-weight:400}
svg{width:100%;min-width:640px;height:auto;display:block;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}
svg .tick,svg .value{fill:var(--soft);font-size:11px}
.grid{stroke:var(--line)}.axis{stroke:var(--soft)}.whisker{stroke:var(--ink);stroke-width:2}
.miss{stroke:var(--fresh);stroke-width:1.5}
rect.read{fill:var(--read)}rect.write{fill:var(--write)}rect.fresh{fill:var(--fresh)}rect.output{fill:var(--output)}
rect.aside{fill:var(--aside)}rect.held{fill:var(--held)}rect.cold{fill:var(--cold)}rect.good{fill:var(--good)}
rect.bad{fill:var(--bad)}rect.gone{fill:var(--soft);opacity:.45}rect.used{fill:var(--fresh)}rect.cut{fill:var(--ink)}
rect.late{fill:var(--late)}polyline.line{fill:none;stroke-width:1.8}
polyline.l0{stroke:var(--l0)}polyline.l1{stroke:var(--l1)}polyline.l2{stroke:var(--l2)}polyline.l3{stroke:var(--l3)}
polyline.l4{stroke:var(--l4)}polyline.l5{stroke:var(--l5)}
rect.l0{fill:var(--l0)}rect.l1{fill:var(--l1)}rect.l2{fill:var(--l2)}rect.l3{fill:var(--l3)}rect.l4{fill:var(--l4)}rect.l5{fill:var(--l5)}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.86rem;color:var(--soft);margin:.3rem 0 .5rem}
.key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em;vertical-align:-.05em}
"""
