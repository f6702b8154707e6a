#include "gallop/parallel/pipeline_drawing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::parallel {

namespace {

using enum PipelinePass;
using Span = PipelineTimeline::Span;

// Boxes of a rank in order, with both passes of a pair in one.
struct Box {
  const Span* span = nullptr;
  const Span* second = nullptr;  // The second span of a pair.
};

std::vector<Box> boxes_of(const std::vector<Span>& spans) {
  std::vector<Box> boxes;
  for (size_t i = 0; i < spans.size(); ++i) {
    boxes.push_back({.span = &spans[i]});
    if (spans[i].action.is_paired) boxes.back().second = &spans[++i];
  }
  return boxes;
}

// "F3", or "2F3" if a rank has several stages.
std::string label_of(const PipelineSchedule& schedule, const PipelineAction& action) {
  const std::string text = text_of(action);
  return schedule.stages_per_rank == 1 ? text.substr(text.find_first_not_of("0123456789")) : text;
}

std::string label_of(const PipelineSchedule& schedule, const Box& box) {
  std::string label = label_of(schedule, box.span->action);
  if (box.second != nullptr) label += "|" + label_of(schedule, box.second->action);
  return label;
}

// In pixels.
constexpr double kWidth = 1080, kRow = 30, kGap = 6, kLeft = 74, kTop = 84, kEdge = 16;
constexpr double kCharacter = 6.1;

constexpr const char* kStyle = R"css(
svg { background: #ffffff; }
text { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: #1c2127; }
text.title { font-size: 15px; font-weight: 600; }
text.weak { fill: #66707c; }
text.in { fill: #ffffff; text-anchor: middle; font-size: 10px; }
rect.wait { fill: #000000; fill-opacity: 0.05; }
.F { fill: #4477cc; } .B { fill: #2a9d6a; } .I { fill: #17877f; } .W { fill: #c98a10; }
@media (prefers-color-scheme: dark) {
  svg { background: #15191e; }
  text { fill: #dfe4ea; }
  text.weak { fill: #97a1ad; }
  rect.wait { fill: #ffffff; fill-opacity: 0.07; }
}
)css";

constexpr std::pair<PipelinePass, const char*> kLegend[] = {{kForward, "forward"},
                                                            {kBackward, "backward"},
                                                            {kInputGradient, "input gradient"},
                                                            {kWeightGradient, "weight gradient"}};

class Drawing {
 public:
  Drawing(const PipelineSchedule& schedule, const PipelineTimeline& timeline,
          const std::string& title, std::string unit)
      : schedule_(schedule),
        unit_(unit.empty() ? "" : " " + std::move(unit)),
        scale_(timeline.makespan > 0 ? kWidth / timeline.makespan : 0) {
    const double height = row_y(timeline.ranks.size()) + kEdge + 18;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<title>{2}</title>\n<style>{3}</style>\n",
        kLeft + kWidth + kEdge, height, xml_text(title), kStyle);
    add("<text class=\"title\" x=\"{}\" y=\"28\">{}</text>\n", kEdge, xml_text(title));
    add("<text x=\"{}\" y=\"48\">{:.4g}{} in all, {:.1f} % of it waiting</text>\n", kEdge,
        timeline.makespan, unit_, 100 * timeline.bubble());
    draw_legend();
    for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
      draw_rank(rank, timeline.ranks[rank]);
    }
    const double y = row_y(timeline.ranks.size()) + 14;
    add("<text class=\"weak\" x=\"{}\" y=\"{}\">0</text>\n", kLeft, y);
    add("<text class=\"weak\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.4g}{}</text>\n</svg>\n",
        kLeft + kWidth, y, timeline.makespan, unit_);
  }

  std::string take() { return std::move(out_); }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  static double row_y(size_t rank) { return kTop + (kRow + kGap) * static_cast<double>(rank); }

  void draw_legend() {
    double x = kEdge;
    for (const auto& [pass, name] : kLegend) {
      const bool is_used = std::ranges::any_of(schedule_.actions, [&](const auto& actions) {
        return std::ranges::any_of(
            actions, [&](const PipelineAction& action) { return action.pass == pass; });
      });
      if (!is_used) continue;
      add("<rect class=\"{}\" x=\"{:.1f}\" y=\"58\" width=\"11\" height=\"11\" rx=\"2\"/>"
          "<text x=\"{:.1f}\" y=\"68\">{}</text>\n",
          static_cast<char>(pass), x, x + 16, name);
      x += 40 + kCharacter * static_cast<double>(std::string_view(name).size());
    }
  }

  void draw_rank(size_t rank, const std::vector<Span>& spans) {
    const double y = row_y(rank);
    add("<text x=\"{}\" y=\"{}\">rank {}</text>\n", kEdge, y + kRow / 2 + 4, rank);
    add("<rect class=\"wait\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kLeft, y, kWidth,
        kRow);
    for (const Box& box : boxes_of(spans)) {
      const double height = box.second == nullptr ? kRow : kRow / 2;
      draw_span(*box.span, y, height);
      if (box.second != nullptr) draw_span(*box.second, y + height, height);
    }
  }

  void draw_span(const Span& span, double y, double height) {
    const PipelineAction& action = span.action;
    const double x = kLeft + scale_ * span.begin;
    const double width = std::max(0.5, scale_ * (span.end - span.begin) - 1);
    const int chunk = action.stage / schedule_.ranks;
    add("<g><title>{}: {:.4g} to {:.4g}{}</title>", text_of(action), span.begin, span.end, unit_);
    add("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"2\" "
        "fill-opacity=\"{:.2f}\"/>",
        static_cast<char>(action.pass), x, y, width, height - 1,
        1 - 0.4 * chunk / std::max(1, schedule_.stages_per_rank - 1));
    const std::string label = fmt::format("{}", action.micro_batch);
    if (kCharacter * static_cast<double>(label.size()) + 2 <= width) {
      add("<text class=\"in\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + width / 2,
          y + height / 2 + 3.5, label);
    }
    add("</g>\n");
  }

  const PipelineSchedule& schedule_;
  std::string unit_;
  double scale_;  // Pixels per unit of time.
  std::string out_;
};

}  // namespace

std::string timeline_text(const PipelineSchedule& schedule, const PipelineTimeline& timeline,
                          size_t columns) {
  const std::string last_rank = fmt::format("{}", timeline.ranks.size() - 1);
  const size_t number = std::max<size_t>(4, last_rank.size());
  const size_t most = columns > number + 12 ? columns - number - 2 : 10;
  // As wide as the labels need, if the line is long enough.
  double scale = 0;
  for (const auto& spans : timeline.ranks) {
    for (const Box& box : boxes_of(spans)) {
      const double time = box.span->end - box.span->begin;
      const auto width = static_cast<double>(label_of(schedule, box).size() + 1);
      if (time > 0) scale = std::max(scale, width / time);
    }
  }
  if (timeline.makespan > 0) {
    scale = std::min(scale, static_cast<double>(most) / timeline.makespan);
  }
  std::string text = fmt::format("{:>{}}\n", "rank", number);
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    std::string line;
    for (const Box& box : boxes_of(timeline.ranks[rank])) {
      const auto begin = static_cast<size_t>(std::lround(scale * box.span->begin));
      const auto end = static_cast<size_t>(std::lround(scale * box.span->end));
      if (end <= begin) continue;
      line.resize(std::max(line.size(), begin), ' ');
      std::string label = label_of(schedule, box).substr(0, end - begin - 1);
      label.resize(end - begin - 1, '-');
      line += label + " ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{:>{}}  {}\n", rank, number, line);
  }
  return text;
}

std::string timeline_svg(const PipelineSchedule& schedule, const PipelineTimeline& timeline,
                         const std::string& title, const std::string& unit) {
  return Drawing(schedule, timeline, title, unit).take();
}

}  // namespace gallop::parallel
