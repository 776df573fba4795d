// What is known of vocabularies by the form of their ids: where a label is found, and how MARC names its source.

const KNOWN = [
  { form: /^(?:gnd:|https?:\/\/d-nb\.info\/gnd\/)([\dX-]+)$/i, link: (id) => `https://d-nb.info/gnd/${id}`, number: (id) => `(DE-588)${id}`, source: "gnd" },
  { form: /^https?:\/\/id\.loc\.gov\/authorities\/subjects\/(\w+)$/, indicator: "0" },
  { form: /^https?:\/\/id\.nlm\.nih\.gov\/mesh\/(?:\d+\/)?(\w+)$/, indicator: "2" },
  { form: /^https?:\/\/www\.yso\.fi\/onto\/yso\/(\w+)$/, source: "yso" },
  { form: /^https?:\/\/eurovoc\.europa\.eu\/(\w+)$/, source: "eurovoc" },
  { form: /^https?:\/\/zbw\.eu\/stw\/descriptor\/([\w-]+)$/, source: "stw" },
  { form: /^https?:\/\/aims\.fao\.org\/aos\/agrovoc\/(\w+)$/, source: "agrovoc" },
  { form: /^https?:\/\/id\.worldcat\.org\/fast\/(\d+)$/, source: "fast", number: (id) => `(OCoLC)fst${id.padStart(8, "0")}` },
];

/** {link, number, source, indicator} of an id: a page for people, $0, $2 and the second indicator of MARC 650. */
export function authority(uri) {
  const isLink = /^https?:\/\//.test(uri);
  for (const { form, link, number, source = null, indicator = "7" } of KNOWN) {
    const found = uri.match(form);
    if (found) return { link: link ? link(found[1]) : uri, number: number ? number(found[1]) : uri, source, indicator };
  }
  return { link: isLink ? uri : null, number: isLink ? uri : null, source: null, indicator: "4" };
}
