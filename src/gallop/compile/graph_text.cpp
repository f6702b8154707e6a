#include "gallop/compile/graph_text.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::compile {

namespace {

constexpr size_t kAll = std::numeric_limits<size_t>::max();
constexpr size_t kMostInList = 2;
constexpr size_t kMostResultColumns = 36;

size_t result_columns(const std::vector<std::string>& results) {
  size_t columns = 6;
  for (const std::string& result : results) columns = std::max(columns, result.size());
  return std::min(columns, kMostResultColumns);
}

// "+4 gallop::bias_gelu, -8 aten::gelu": sorted by the size of the change.
std::string changes_text(const std::map<std::string, int64_t>& changes) {
  std::vector<std::pair<std::string, int64_t>> sorted(changes.begin(), changes.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second) > std::abs(b.second);
  });
  std::string text;
  for (const auto& [op, change] : sorted) {
    text += fmt::format("{}{:+} {}", text.empty() ? "" : ", ", change, op);
  }
  return text;
}

}  // namespace

std::string summary_text(const GraphListing& listing, size_t most_operators) {
  std::string text = fmt::format(
      "{} nodes, {:.4f} ms (medians of {} runs); temporaries: {} planned, {} most in use\n",
      listing.nodes.size(), 1e3 * listing.seconds, listing.runs,
      format_bytes(listing.planned_bytes), format_bytes(listing.most_in_use_bytes));
  size_t columns = 8;
  const size_t shown = std::min(most_operators, listing.operators.size());
  for (size_t i = 0; i < shown; ++i) columns = std::max(columns, listing.operators[i].op.size());
  const auto line = [&](const ListedOperator& all) {
    text += fmt::format("{:<{}}  {:>5}  {:>9.4f}  {:>5.1f}\n", all.op, columns, all.count,
                        1e3 * all.seconds, 100 * listing.share_of(all.seconds));
  };
  text += fmt::format("\n{:<{}}  {:>5}  {:>9}  {:>5}\n", "kind", columns, "count", "ms", "%");
  for (const ListedOperator& kind : listing.kinds()) line(kind);
  text += fmt::format("\n{:<{}}  {:>5}  {:>9}  {:>5}\n", "operator", columns, "count", "ms", "%");
  ListedOperator rest;
  for (size_t i = 0; i < listing.operators.size(); ++i) {
    if (i < shown) {
      line(listing.operators[i]);
    } else {
      rest.count += listing.operators[i].count;
      rest.seconds += listing.operators[i].seconds;
    }
  }
  rest.op = fmt::format("{} more", listing.operators.size() - shown);
  if (rest.count > 0) line(rest);
  return text;
}

std::string nodes_text(const GraphListing& listing, size_t width) {
  const size_t in_list = width == 0 ? kAll : kMostInList;
  std::vector<std::string> results;
  for (const ListedNode& node : listing.nodes) {
    results.push_back(width == 0 ? node.text_of_results(kAll)
                                 : node.text_of_results_within(kMostResultColumns));
  }
  const size_t columns = result_columns(results);
  std::string text = fmt::format("{:>4}  {:>9}  {:>5}  {:<{}}  {}\n", "#", "ms", "%", "result",
                                 columns, width == 0 ? "operator  # layer" : "operator");
  for (size_t i = 0; i < listing.nodes.size(); ++i) {
    const ListedNode& node = listing.nodes[i];
    std::string line = fmt::format("{:>4}  {:>9.4f}  {:>5.1f}  {:<{}}  {}", node.number,
                                   1e3 * node.seconds, 100 * listing.share_of(node.seconds),
                                   results[i], columns, node.text_of_call(in_list));
    const std::string layers = node.text_of_layers();
    if (width == 0 && !layers.empty()) line += "  # " + layers;
    text += (width == 0 ? line : cut(line, width)) + "\n";
  }
  return text;
}

std::string stages_text(const std::vector<GraphStage>& stages, size_t width) {
  std::string text = fmt::format("{:<16} {:>5}  {:>9}  {:>10}  {:>11}  {}\n", "pass", "nodes", "ms",
                                 "planned", "most in use", "operators added and removed");
  const GraphListing* before = nullptr;
  for (const auto& [name, listing] : stages) {
    std::string changes;
    if (before != nullptr) changes = changes_text(changes_of(*before, listing));
    if (!changes.empty()) changes.insert(0, "  ");
    const std::string line =
        fmt::format("{:<16} {:>5}  {:>9.4f}  {:>10}  {:>11}{}", name, listing.nodes.size(),
                    1e3 * listing.seconds, format_bytes(listing.planned_bytes),
                    format_bytes(listing.most_in_use_bytes), changes);
    text += (width == 0 ? line : cut(line, width)) + "\n";
    before = &listing;
  }
  return text;
}

}  // namespace gallop::compile
