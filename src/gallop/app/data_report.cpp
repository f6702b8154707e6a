#include "gallop/app/data_report.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/text.h"
#include "gallop/data/png_writer.h"
#include "gallop/track/evaluation_report.h"

namespace gallop::app {

namespace {

constexpr size_t kListed = 20;  // Groups without pictures.

std::string caption_of(const data::FoundSample& sample) {
  std::string text = sample.name;
  if (!sample.label.empty()) text += fmt::format(" ({})", sample.label);
  if (!sample.value.empty()) text += ": " + sample.value;
  return text;
}

bool has_picture(const std::vector<data::FoundSample>& group) {
  return std::any_of(group.begin(), group.end(),
                     [](const data::FoundSample& one) { return !one.picture.pixels.empty(); });
}

// Groups of one share a row.
std::vector<ReportPage::Pictures> pictures_of(const data::QualityFinding& finding) {
  std::vector<ReportPage::Pictures> rows;
  bool continues = false;
  for (const auto& group : finding.groups) {
    if (!has_picture(group)) continue;
    const bool is_single = group.size() == 1;
    if (!is_single || !continues) rows.emplace_back();
    continues = is_single;
    for (const data::FoundSample& one : group) {
      if (one.picture.pixels.empty()) continue;
      rows.back().files.emplace_back(caption_of(one), data::encode_png(one.picture));
    }
  }
  return rows;
}

// What the pictures do not show.
std::string note_of(const data::QualityFinding& finding) {
  std::vector<std::string> lines;
  size_t pictured = 0;
  for (const auto& group : finding.groups) {
    if (has_picture(group)) {
      ++pictured;
      continue;
    }
    if (lines.size() == kListed || pictured > 0) break;
    std::vector<std::string> names;
    for (const data::FoundSample& one : group) names.push_back(caption_of(one));
    lines.push_back(fmt::format("{}", fmt::join(names, " = ")));
  }
  const size_t rest = finding.groups.size() - pictured - lines.size();
  if (rest > 0) lines.push_back(fmt::format("{} more", format_count(static_cast<int64_t>(rest))));
  return fmt::format("{}", fmt::join(lines, "; "));
}

}  // namespace

ReportPage::Section section_of(const data::QualityFinding& finding, const fs::path& folder) {
  return {.title = finding.title,
          .text = finding.text,
          .code = data::recipe_lines(finding, folder.string()),
          .pictures = pictures_of(finding),
          .is_dense = true,
          .note = note_of(finding)};
}

void write_excluded(const fs::path& folder, const data::QualityFinding& finding) {
  if (finding.excluded.empty()) return;
  std::string text = fmt::format("# {}\n", printable(finding.text));
  std::set<std::string> written;
  for (const std::string& name : finding.excluded) {
    if (written.insert(name).second) text += name + "\n";
  }
  write_file_atomically(folder / (finding.kind + ".txt"), text);
}

void write_data_report(const fs::path& folder, const data::DataQuality& quality,
                       const std::string& recipe) {
  track::clear_report_folder(folder);
  ReportPage page{.title = fmt::format("Data of {}", recipe)};
  for (const auto& [name, count] : quality.splits) {
    page.facts.emplace_back(fmt::format("{} in {}", quality.unit, name), format_count(count));
  }
  page.facts.emplace_back("checked", fmt::format("{}", fmt::join(quality.checks, ", ")));
  for (const std::string& note : quality.notes) page.facts.emplace_back("note", note);
  if (quality.findings.empty()) page.facts.emplace_back("findings", "none");
  for (const data::QualityFinding& finding : quality.findings) {
    page.sections.push_back(section_of(finding, folder));
    write_excluded(folder, finding);
  }
  write_file_atomically(folder / "report.html", to_html(page));
  write_file_atomically(folder / "report.json", data::to_json(quality) + "\n");
}

}  // namespace gallop::app
