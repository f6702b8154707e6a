#include "gallop/compile/graph_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::compile {

namespace {

// In pixels.
constexpr double kRow = 18, kHeader = 118, kCharacter = 6.62;
constexpr double kArcs = 190, kNumber = 34, kBar = 170, kTimes = 108, kGap = 14, kEdge = 16;
constexpr size_t kCallCharacters = 110, kMostResultCharacters = 40, kMostInList = 2,
                 kMostInTitle = 12;

// Distinguishable with color vision deficiency, and on light and dark backgrounds.
constexpr std::array<const char*, kNodeKinds> kColors = {"#4477cc", "#2a9d6a", "#8e5bc0",
                                                         "#d99a1c", "#cc5544", "#8a8f98"};

constexpr const char* kStyle = R"css(
svg { background: #ffffff; }
text { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1c2127; white-space: pre; }
text.title { font-size: 15px; font-weight: 600; }
text.weak { fill: #66707c; }
rect.row { fill: #000000; fill-opacity: 0; }
g.odd rect.row { fill-opacity: 0.035; }
g.node:hover rect.row { fill-opacity: 0.1; }
path { fill: none; stroke: #66707c; stroke-opacity: 0.3; }
svg.pointed path { stroke-opacity: 0.05; }
svg.pointed path.on { stroke: #d0591b; stroke-opacity: 1; stroke-width: 1.6; }
@media (prefers-color-scheme: dark) {
  svg { background: #15191e; }
  text { fill: #dfe4ea; }
  text.weak, path { fill: #97a1ad; }
  path { fill: none; stroke: #97a1ad; }
  rect.row { fill: #ffffff; }
  svg.pointed path.on { stroke: #ff9a55; }
}
)css";

// Shows only the arcs of the row under the pointer.
constexpr const char* kScript = R"js(
const svg = document.documentElement;
const arcs = [...svg.querySelectorAll("path")];
svg.addEventListener("mouseover", event => {
  const node = event.target.closest("g.node");
  svg.classList.toggle("pointed", node !== null);
  for (const arc of arcs) {
    const ends = [arc.dataset.from, arc.dataset.to];
    arc.classList.toggle("on", node !== null && ends.includes(node.dataset.node));
  }
});
)js";

class Drawing {
 public:
  Drawing(const GraphListing& listing, const std::string& title) : listing_(listing) {
    for (const ListedNode& node : listing.nodes) {
      slowest_ = std::max(slowest_, node.seconds);
      results_.push_back(node.text_of_results_within(kMostResultCharacters));
      calls_.push_back(cut(node.text_of_call(kMostInList), kCallCharacters));
      result_width_ =
          std::max(result_width_, kCharacter * static_cast<double>(results_.back().size()));
      call_width_ = std::max(call_width_, kCharacter * static_cast<double>(calls_.back().size()));
    }
    for (const ListedOperator& kind : listing.kinds()) {
      legend_.push_back(fmt::format("{}: {} nodes, {:.4f} ms, {:.1f} %", kind.op, kind.count,
                                    1e3 * kind.seconds, 100 * listing.share_of(kind.seconds)));
    }
    const double width = std::max(call_x() + call_width_, legend_x(legend_.size())) + kEdge;
    const double height = kHeader + kRow * static_cast<double>(listing.nodes.size()) + kEdge;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>{3}</style>\n",
        width, height, xml_text(title), kStyle);
    add("<text class=\"title\" x=\"{}\" y=\"28\">{}</text>\n", kEdge, xml_text(title));
    draw_summary();
    draw_legend();
    draw_heads();
    for (const ListedNode& node : listing.nodes) draw_row(node);
    for (const ListedNode& node : listing.nodes) draw_arcs(node);
    add("<script><![CDATA[{}]]></script>\n</svg>\n", kScript);
  }

  std::string take() { return std::move(out_); }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  static double row_y(int64_t number) { return kHeader + kRow * static_cast<double>(number); }
  static double bar_x() { return kArcs + kNumber + kGap; }
  static double times_x() { return bar_x() + kBar; }
  static double result_x() { return times_x() + kTimes + kGap; }
  double call_x() const { return result_x() + result_width_ + kGap; }

  void draw_summary() {
    add("<text x=\"{}\" y=\"50\">{} nodes, {:.4f} ms (medians of {} runs); temporaries: {} "
        "planned, {} "
        "most in use</text>\n",
        kEdge, listing_.nodes.size(), 1e3 * listing_.seconds, listing_.runs,
        format_bytes(listing_.planned_bytes), format_bytes(listing_.most_in_use_bytes));
  }

  // The x coordinate of legend entry `index`.
  double legend_x(size_t index) const {
    double x = kEdge;
    for (size_t i = 0; i < index; ++i) {
      x += 16 + kCharacter * static_cast<double>(legend_[i].size()) + 2 * kGap;
    }
    return x;
  }

  void draw_legend() {
    const auto kinds = listing_.kinds();
    for (size_t i = 0; i < kinds.size(); ++i) {
      add("<rect x=\"{:.1f}\" y=\"64\" width=\"11\" height=\"11\" rx=\"2\" fill=\"{}\"/>\n",
          legend_x(i), kColors[static_cast<size_t>(kinds[i].kind)]);
      add("<text x=\"{:.1f}\" y=\"74\">{}</text>\n", legend_x(i) + 16, legend_[i]);
    }
  }

  void draw_heads() {
    const double y = kHeader - 8;
    const auto head = [&](double x, const char* text, const char* anchor) {
      add("<text class=\"weak\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
          text);
    };
    head(kArcs - 6, "from maker to user", "end");
    head(kArcs + kNumber, "#", "end");
    head(bar_x(), "time", "start");
    head(times_x() + 58, "ms", "end");
    head(times_x() + kTimes, "%", "end");
    head(result_x(), "result", "start");
    head(call_x(), "operator", "start");
  }

  void draw_row(const ListedNode& node) {
    const double y = row_y(node.number), base = y + 13;
    const double bar = slowest_ > 0 ? std::max(1.0, (kBar - kGap) * node.seconds / slowest_) : 1.0;
    add("<g class=\"node{}\" data-node=\"{}\"><title>{}</title>",
        node.number % 2 == 1 ? " odd" : "", node.number, title_of(node));
    add("<rect class=\"row\" x=\"{}\" y=\"{}\" width=\"100%\" height=\"{}\"/>", kArcs, y, kRow);
    add("<text class=\"weak\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kArcs + kNumber,
        base, node.number);
    add("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" rx=\"1.5\" fill=\"{}\"/>", bar_x(),
        y + 3, bar, kRow - 6, kColors[static_cast<size_t>(node.kind)]);
    add("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.4f}</text>", times_x() + 58, base,
        1e3 * node.seconds);
    add("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.1f}</text>", times_x() + kTimes, base,
        100 * listing_.share_of(node.seconds));
    const auto index = static_cast<size_t>(node.number);
    add("<text x=\"{}\" y=\"{}\">{}</text>", result_x(), base, xml_text(results_[index]));
    add("<text x=\"{:.1f}\" y=\"{}\">{}</text></g>\n", call_x(), base, xml_text(calls_[index]));
  }

  std::string title_of(const ListedNode& node) const {
    return xml_text(fmt::format("{}: {:.4f} ms, {:.1f} %, {}", node.number, 1e3 * node.seconds,
                                100 * listing_.share_of(node.seconds), name_of(node.kind))) +
           "\n" + xml_text(node.text_of_results(kMostInTitle)) + "\n" +
           xml_text(node.text_of_call(kMostInTitle));
  }

  // Arcs between distant rows are wider.
  void draw_arcs(const ListedNode& node) {
    const double all = static_cast<double>(std::max<size_t>(listing_.nodes.size(), 2));
    for (const int64_t maker : node.makers) {
      const auto distance = static_cast<double>(node.number - maker);
      const double wide = 10 + (kArcs - 2 * kEdge) * std::sqrt(distance / all);
      const double y1 = row_y(maker) + kRow / 2 + 2, y2 = row_y(node.number) + kRow / 2 - 2;
      add("<path data-from=\"{}\" data-to=\"{}\" d=\"M{} {}C{:.1f} {},{:.1f} {},{} {}\"/>\n", maker,
          node.number, kArcs, y1, kArcs - 4 * wide / 3, y1, kArcs - 4 * wide / 3, y2, kArcs, y2);
    }
  }

  const GraphListing& listing_;
  std::vector<std::string> results_, calls_, legend_;
  double slowest_ = 0, result_width_ = 0, call_width_ = 0;
  std::string out_;
};

}  // namespace

std::string graph_svg(const GraphListing& listing, const std::string& title) {
  return Drawing(listing, title).take();
}

}  // namespace gallop::compile
