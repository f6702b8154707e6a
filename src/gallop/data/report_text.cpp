#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/data/report.h"

namespace gallop::data {

namespace {

std::string range(int low, int high) {
  return low == high ? std::to_string(low) : fmt::format("{} to {}", low, high);
}

std::string shape_text(const ImagePartReport& part) {
  if (part.gray + part.color == 0) return "-";
  std::string text = fmt::format("{} x {}", range(part.min_height, part.max_height),
                                 range(part.min_width, part.max_width));
  if (part.color == 0) return text + " gray";
  if (part.gray == 0) return text + " color";
  return text + fmt::format(" color, {} gray", format_count(part.gray));
}

// Formats cells in aligned columns; the first is left-aligned, numbers are right-aligned.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("{:>{}}", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string images_text(const DataReport& report) {
  std::vector<std::vector<std::string>> parts{{"split", "images", "height x width", "broken"}};
  std::vector<std::vector<std::string>> classes{{"class"}};
  for (const ImagePartReport& part : report.images) {
    parts.push_back(
        {part.name, format_count(part.images), shape_text(part), format_count(part.broken)});
    classes[0].push_back(part.name);
  }
  for (size_t i = 0; i < report.class_names.size(); ++i) {
    std::vector<std::string> row{printable(report.class_names[i])};
    for (const ImagePartReport& part : report.images) {
      row.push_back(format_count(part.class_counts[i]));
    }
    classes.push_back(std::move(row));
  }
  return table(parts) + "\n" + table(classes);
}

std::string texts_text(const DataReport& report) {
  const bool counts_samples = !report.text_samples.empty();
  std::vector<std::vector<std::string>> parts{{"split"}};
  if (counts_samples) parts.front().push_back(report.text_samples);
  parts.front().emplace_back("tokens");
  for (size_t i = 0; i < report.texts.size(); ++i) {
    parts.push_back({report.texts[i].name});
    if (counts_samples) parts.back().push_back(format_count(report.others[i].samples));
    parts.back().push_back(format_count(report.texts[i].tokens));
  }
  const bool are_words = report.unit == "words";
  std::string vocabulary;
  for (const std::string& token : report.vocabulary) {
    if (are_words && !vocabulary.empty()) vocabulary += ' ';
    const bool shows = token.size() > 1 || (token[0] >= 0x20 && token[0] < 0x7F);
    vocabulary += token == "\n" ? "\\n" : token == "\t" ? "\\t" : shows ? token : "?";
    if (vocabulary.size() > 200) {
      vocabulary += "...";
      break;
    }
  }
  return table(parts) + fmt::format("\nvocabulary  {} tokens: {}\n",
                                    format_count(static_cast<int64_t>(report.vocabulary.size())),
                                    vocabulary);
}

std::string others_text(const DataReport& report) {
  std::vector<std::vector<std::string>> splits{{"split", "samples"}};
  for (const SplitReport& split : report.others) {
    splits.push_back({split.name, format_count(split.samples)});
  }
  std::string text = table(splits);
  if (report.class_names.empty()) return text;
  std::vector<std::string> names;
  for (const std::string& name : report.class_names) names.push_back(printable(name));
  return text + fmt::format("\nclasses  {}\n", fmt::join(names, ", "));
}

std::vector<std::string> remarks(const DataReport& report) {
  std::vector<std::string> lines = report.notes;
  for (const SkipCount& skipped : report.skipped) lines.push_back(describe(skipped));
  for (const ImagePartReport& part : report.images) {
    if (part.turned == 0) continue;
    lines.push_back(fmt::format("{}: {} of {} images are turned by their EXIF orientation",
                                part.name, format_count(part.turned), format_count(part.images)));
  }
  if (!report.empty_classes.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : report.empty_classes) names.push_back(printable(name));
    lines.push_back("classes without a training image: " + join_names(names, "and"));
  }
  if (report.imbalance > kBalanced) {
    lines.push_back(fmt::format(
        "classes are out of balance: the largest has {:.1f} times the images of the smallest",
        report.imbalance));
  }
  for (const ImagePartReport& part : report.images) {
    if (part.broken == 0) continue;
    lines.push_back(fmt::format("{}: {} of {} images cannot be decoded:", part.name,
                                format_count(part.broken), format_count(part.images)));
    for (const std::string& example : part.broken_examples) lines.push_back("  " + example);
    const auto shown = static_cast<int64_t>(part.broken_examples.size());
    if (part.broken > shown) {
      lines.push_back(fmt::format("  and {} more", format_count(part.broken - shown)));
    }
  }
  return lines;
}

}  // namespace

std::string to_text(const DataReport& report) {
  std::string text = !report.images.empty()  ? images_text(report)
                     : !report.texts.empty() ? texts_text(report)
                                             : others_text(report);
  const auto lines = remarks(report);
  if (!lines.empty()) text += "\n";
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string to_json(const DataReport& report) {
  // "part" is the deprecated name of "split", for programs that read it.
  nlohmann::ordered_json json;
  for (const ImagePartReport& part : report.images) {
    json["images"].push_back({{"split", part.name},
                              {"part", part.name},
                              {"images", part.images},
                              {"class_counts", part.class_counts},
                              {"height", {part.min_height, part.max_height}},
                              {"width", {part.min_width, part.max_width}},
                              {"gray", part.gray},
                              {"color", part.color},
                              {"turned", part.turned},
                              {"broken", part.broken},
                              {"broken_examples", part.broken_examples}});
  }
  if (!report.images.empty()) {
    json["class_names"] = report.class_names;
    json["imbalance"] = report.imbalance;
    json["empty_classes"] = report.empty_classes;
  }
  for (const TextPartReport& part : report.texts) {
    json["texts"].push_back({{"split", part.name}, {"part", part.name}, {"tokens", part.tokens}});
  }
  if (!report.texts.empty()) json["vocabulary"] = report.vocabulary;
  if (!report.others.empty() && !report.class_names.empty()) {
    json["class_names"] = report.class_names;
  }
  for (const SplitReport& split : report.others) {
    json["splits"].push_back(
        {{"split", split.name}, {"part", split.name}, {"samples", split.samples}});
  }
  json["skipped"] = nlohmann::json::array();
  for (const SkipCount& skipped : report.skipped) {
    json["skipped"].push_back(
        {{"reason", skipped.reason}, {"count", skipped.count}, {"first", skipped.first}});
  }
  json["notes"] = report.notes;
  // File names and token bytes may not be valid UTF-8, which JSON requires.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace gallop::data
