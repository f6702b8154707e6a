#include "gallop/data/quality/data_quality.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/data/report.h"

namespace gallop::data {

namespace {

constexpr size_t kListed = 5;  // Groups of a finding in the terminal.
constexpr size_t kInLine = 3;  // Members of a group in a line.

// "pictures/train/" of "pictures/train/cat.jpg" and of "pictures/train/a.tar: x/1.jpg".
std::string_view folder_of(std::string_view description) {
  const std::string_view file = description.substr(0, description.find(": "));
  const size_t slash = file.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : file.substr(0, slash + 1);
}

std::string describe(const FoundSample& sample) {
  std::string text = printable(sample.name);
  // Errors begin with the file's name.
  if (!sample.value.empty())
    text = printable(sample.value).find(text) != std::string::npos
               ? printable(sample.value)
               : fmt::format("{}: {}", text, printable(sample.value));
  return text;
}

std::string describe(const std::vector<FoundSample>& group) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(group.size(), kInLine); ++i) shown.push_back(describe(group[i]));
  if (group.size() > kInLine) shown.push_back(fmt::format("{} more", group.size() - kInLine));
  return fmt::format("{}", fmt::join(shown, " = "));
}

}  // namespace

SampleNames::SampleNames(const std::vector<std::string>& descriptions) {
  if (descriptions.empty()) return;
  std::string_view shared = folder_of(descriptions.front());
  for (const std::string& one : descriptions) {
    const std::string_view folder = folder_of(one);
    const auto ends = std::mismatch(shared.begin(), shared.end(), folder.begin(), folder.end());
    shared = shared.substr(0, static_cast<size_t>(ends.first - shared.begin()));
    shared = shared.substr(0, shared.rfind('/') + 1);
  }
  shared_ = shared.size();
  std::unordered_set<std::string_view> names;
  for (const std::string& one : descriptions) names.insert(std::string_view(one).substr(shared_));
  for (const std::string& one : descriptions) {
    for (size_t slash = one.find('/', shared_); slash != std::string::npos;
         slash = one.find('/', slash + 1)) {
      const std::string_view end = std::string_view(one).substr(slash + 1);
      if (names.contains(end)) ambiguous_.emplace(end);
    }
  }
}

std::string SampleNames::shorten(const std::string& description) const {
  std::string name = description.substr(shared_);
  return ambiguous_.contains(name) ? description : name;
}

std::string counted(int64_t count, const std::string& plural) {
  return fmt::format("{} {}", format_count(count),
                     count == 1 ? plural.substr(0, plural.size() - 1) : plural);
}

void check_balance(const std::vector<int64_t>& train_counts,
                   const std::vector<std::string>& class_names, DataQuality& quality,
                   bool can_balance) {
  std::vector<std::string> empty;
  size_t smallest = 0, largest = 0;
  bool has_any = false;
  for (size_t i = 0; i < train_counts.size(); ++i) {
    if (train_counts[i] == 0) {
      empty.push_back(printable(class_names[i]));
      continue;
    }
    if (!has_any || train_counts[i] < train_counts[smallest]) smallest = i;
    if (!has_any || train_counts[i] > train_counts[largest]) largest = i;
    has_any = true;
  }
  if (!empty.empty()) {
    quality.findings.push_back({.kind = "empty-classes",
                                .title = "Empty classes",
                                .text = fmt::format("classes without training {}: {}", quality.unit,
                                                    join_names(empty, "and"))});
  }
  if (!has_any) return;
  const auto most = static_cast<double>(train_counts[largest]);
  const auto least = static_cast<double>(train_counts[smallest]);
  if (most <= kBalanced * least) return;
  quality.findings.push_back(
      {.kind = "class-imbalance",
       .title = "Classes out of balance",
       .text = fmt::format("the largest class, {}, has {:.1f} times the training {} of the "
                           "smallest, {}: {} and {}",
                           printable(class_names[largest]), most / least, quality.unit,
                           printable(class_names[smallest]), format_count(train_counts[largest]),
                           format_count(train_counts[smallest])),
       .remedy = can_balance ? "data.sampling: class-balanced" : ""});
}

std::vector<std::string> recipe_lines(const QualityFinding& finding,
                                      const std::string& excluded_in) {
  std::vector<std::string> lines;
  if (!finding.excluded.empty() && !excluded_in.empty()) {
    lines.push_back(fmt::format("data.exclude: [{}/{}.txt]", excluded_in, finding.kind));
  }
  if (!finding.remedy.empty()) lines.push_back(finding.remedy);
  return lines;
}

std::string to_text(const DataQuality& quality, const std::string& excluded_in) {
  std::vector<std::string> sizes;
  for (const auto& [name, count] : quality.splits) {
    sizes.push_back(fmt::format("{} {}", format_count(count), name));
  }
  std::string text = fmt::format("{:<10} {}\n{:<10} {}\n", quality.unit, fmt::join(sizes, ", "),
                                 "checked", fmt::join(quality.checks, ", "));
  for (const std::string& note : quality.notes) text += fmt::format("note       {}\n", note);
  if (quality.findings.empty()) text += "\nnothing found\n";
  for (const QualityFinding& finding : quality.findings) {
    text += fmt::format("\n{}: {}\n", finding.kind, finding.text);
    const size_t groups = finding.groups.size();
    for (size_t i = 0; i < std::min(groups, kListed); ++i) {
      text += fmt::format("  {}\n", describe(finding.groups[i]));
    }
    if (groups > kListed) text += fmt::format("  and {} more\n", format_count(groups - kListed));
    for (const std::string& line : recipe_lines(finding, excluded_in)) {
      text += fmt::format("  -> {}\n", line);
    }
  }
  return text;
}

std::string to_json(const DataQuality& quality) {
  nlohmann::ordered_json json{{"unit", quality.unit}, {"splits", nlohmann::ordered_json::object()}};
  for (const auto& [name, count] : quality.splits) json["splits"][name] = count;
  json["checks"] = quality.checks;
  json["findings"] = nlohmann::ordered_json::array();
  for (const QualityFinding& finding : quality.findings) {
    nlohmann::ordered_json groups = nlohmann::ordered_json::array();
    for (const auto& group : finding.groups) {
      nlohmann::ordered_json members = nlohmann::ordered_json::array();
      for (const FoundSample& one : group) {
        members.push_back({{"name", one.name},
                           {"split", kPartNames[static_cast<size_t>(one.part)]},
                           {"part", kPartNames[static_cast<size_t>(one.part)]},
                           {"label", one.label},
                           {"value", one.value}});
      }
      groups.push_back(std::move(members));
    }
    json["findings"].push_back({{"kind", finding.kind},
                                {"text", finding.text},
                                {"groups", std::move(groups)},
                                {"exclude", finding.excluded},
                                {"remedy", finding.remedy}});
  }
  json["notes"] = quality.notes;
  // File names may not be valid UTF-8, which JSON requires.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace gallop::data
