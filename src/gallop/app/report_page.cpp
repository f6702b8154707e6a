#include "gallop/app/report_page.h"

#include <fmt/format.h>

#include "gallop/base/base64.h"
#include "gallop/base/text.h"

namespace gallop::app {

namespace {

// Drawings bring styles of their own, which hold for all of the page: no class here has the name of
// one there.
constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 24px 16px 48px; max-width: 980px; font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif;
  background: #ffffff; color: #1c2127; }
h1 { font-size: 22px; margin: 0 0 16px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 28px 0 8px; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 4px 24px 4px 0; border-bottom: 1px solid #e3e7ec; vertical-align: top;
  overflow-wrap: anywhere; }
th { font-weight: 500; color: #5f6b7a; }
td.value { text-align: right; font-variant-numeric: tabular-nums; padding-right: 0; }
.cells > * { overflow-wrap: normal; padding-right: 16px; }
figure { margin: 24px 0 0; overflow-x: auto; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; margin: 0 0 8px; padding: 0; }
.legend i { display: inline-block; width: 14px; height: 14px; margin-right: 6px; border-radius: 3px; vertical-align: -2px; }
.pictures { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 10px; margin: 0 0 16px; }
.dense { display: flex; flex-wrap: wrap; gap: 4px 26px; font-size: 12px; line-height: 1.35; }
.dense .pictures { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 10px; }
.dense figure { width: 108px; }
.pictures figure { margin: 0; overflow-wrap: anywhere; }
.dense figcaption { margin-top: 3px; }
.pictures img { display: block; width: 100%; image-rendering: pixelated; border-radius: 4px; }
pre { margin: 0 0 10px; padding: 8px 12px; background: #f1f4f7; border-radius: 4px; overflow-x: auto; font-size: 13px; }
figcaption, .caption { color: #5f6b7a; margin: 0 0 4px; }
figure > svg { display: block; max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  body { background: #15191e; color: #dfe4ea; }
  th, figcaption, .caption { color: #97a1ad; }
  th, td { border-color: #262d35; }
  pre { background: #1f252c; }
}
)css";

std::string table(const ReportPage::Rows& rows, const char* style) {
  std::string text = "<table>\n";
  for (const auto& [name, value] : rows) {
    text += fmt::format("<tr><th scope=\"row\">{}</th><td{}>{}</td></tr>\n", xml_text(name), style,
                        xml_text(value));
  }
  return text + "</table>\n";
}

std::string table_of(const ReportPage::Table& table) {
  std::string text = fmt::format("<h2>{}</h2>\n<table>\n", xml_text(table.title));
  for (size_t i = 0; i < table.rows.size(); ++i) {
    text += "<tr class=\"cells\">";
    for (const std::string& cell : table.rows[i]) {
      text += i == 0 ? fmt::format("<th scope=\"col\">{}</th>", xml_text(cell))
                     : fmt::format("<td>{}</td>", xml_text(cell));
    }
    text += "</tr>\n";
  }
  text += "</table>\n";
  if (!table.note.empty()) text += fmt::format("<p>{}</p>\n", xml_text(table.note));
  return text;
}

std::string section_of(const ReportPage::Section& section) {
  std::string text = fmt::format("<h2>{}</h2>\n", xml_text(section.title));
  if (!section.text.empty()) text += fmt::format("<p>{}</p>\n", xml_text(section.text));
  for (const std::string& line : section.code) {
    text += fmt::format("<pre>{}</pre>\n", xml_text(line));
  }
  if (!section.legend.empty()) text += "<ul class=\"legend\">\n";
  for (const auto& [name, color] : section.legend) {
    text += fmt::format("<li><i style=\"background:{}\"></i>{}</li>\n", xml_text(color),
                        xml_text(name));
  }
  if (!section.legend.empty()) text += "</ul>\n";
  if (section.is_dense) text += "<div class=\"dense\">\n";
  for (const ReportPage::Pictures& row : section.pictures) {
    if (!row.caption.empty()) {
      text += fmt::format("<p class=\"caption\">{}</p>\n", xml_text(row.caption));
    }
    text += "<div class=\"pictures\">\n";
    for (const auto& [name, content] : row.files) {
      text += fmt::format(
          "<figure><img alt=\"{0}\" "
          "src=\"data:image/png;base64,{1}\"><figcaption>{0}</figcaption></figure>\n",
          xml_text(name), to_base64(content));
    }
    text += "</div>\n";
  }
  if (section.is_dense) text += "</div>\n";
  if (!section.note.empty()) text += fmt::format("<p>{}</p>\n", xml_text(section.note));
  return text;
}

}  // namespace

std::string to_html(const ReportPage& page) {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      xml_text(page.title), kStyle);
  text += table(page.facts, "");
  if (!page.metrics.empty()) {
    text += "<h2>Metrics</h2>\n" + table(page.metrics, " class=\"value\"");
  }
  for (const ReportPage::Table& one : page.tables) text += table_of(one);
  if (!page.svgs.empty()) text += "<h2>Figures</h2>\n";
  for (const std::string& svg : page.svgs) text += "<figure>\n" + svg + "</figure>\n";
  for (const ReportPage::Section& one : page.sections) text += section_of(one);
  return text + "</body>\n</html>\n";
}

}  // namespace gallop::app
