#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <span>

#include "gallop/base/error.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"
#include "gallop/ui/api/run_line.h"
#include "gallop/ui/curve.h"

namespace gallop::ui::api {

namespace {

using track::MetricSummary;

constexpr int64_t kMostPoints = 20'000;

// The requested range, resolution and scaling of curves.
struct Drawing {
  double smoothing = 0;
  std::optional<double> from, to;
  size_t points = 1000;
};

Drawing drawing_of(const Query& query) {
  Drawing drawing;
  drawing.smoothing = smoothing_of(query);
  drawing.from = query.number("from");
  drawing.to = query.number("to");
  drawing.points = static_cast<size_t>(query.count("points", 8, kMostPoints, 1000));
  return drawing;
}

struct Range {
  size_t begin = 0, end = 0;
};

// The indices within the bounds, and one more on each side, as lines extend to it.
Range range_of(const std::vector<double>& x, const Drawing& drawing) {
  Range range{.begin = 0, .end = x.size()};
  while (drawing.from && range.begin < range.end && x[range.begin] < *drawing.from) ++range.begin;
  while (drawing.to && range.end > range.begin && x[range.end - 1] > *drawing.to) --range.end;
  if (range.begin > 0) --range.begin;
  if (range.end < x.size()) ++range.end;
  return range;
}

std::vector<double> at(const std::vector<double>& values, const std::vector<size_t>& places,
                       size_t offset) {
  std::vector<double> result;
  result.reserve(places.size());
  for (const size_t place : places) result.push_back(values[offset + place]);
  return result;
}

Json value_at(double value, int64_t step) {
  return {{"value", number_json(value)}, {"step", step}};
}

Json curve_of(const RunLine& run, const Drawing& drawing) {
  const Line& line = run.line;
  const std::vector<double> smooth = smoothed(line.y, drawing.smoothing);
  const Range range = range_of(line.x, drawing);
  const auto places =
      reduced(std::span(line.y).subspan(range.begin, range.end - range.begin), drawing.points);
  Json curve{{"run", run.run},
             {"count", line.x.size()},
             {"x", numbers_json(at(line.x, places, range.begin))},
             {"y", numbers_json(at(line.y, places, range.begin))},
             {"smooth", numbers_json(at(smooth, places, range.begin))}};
  if (!run.trouble.empty()) curve["trouble"] = run.trouble;
  if (line.x.empty()) {
    for (const char* name : {"latest", "least", "most"}) curve[name] = nullptr;
    return curve;
  }
  const MetricSummary summary = summary_of(run.points);
  curve["latest"] = value_at(summary.last, summary.last_step);
  // Without finite points there is neither.
  const bool has_ends = std::isfinite(summary.least);
  curve["least"] = has_ends ? value_at(summary.least, summary.least_step) : Json();
  curve["most"] = has_ends ? value_at(summary.most, summary.most_step) : Json();
  return curve;
}

Json band_json(const Band& band, const Drawing& drawing) {
  const Range range = range_of(band.x, drawing);
  const auto part = [&](const std::vector<double>& values) {
    return std::span(values).subspan(range.begin, range.end - range.begin);
  };
  const auto places = reduced_band(part(band.least), part(band.most), drawing.points);
  const auto json = [&](const std::vector<double>& values) {
    return numbers_json(at(values, places, range.begin));
  };
  return {{"x", json(band.x)},       {"mean", json(band.mean)},   {"low", json(band.low)},
          {"high", json(band.high)}, {"least", json(band.least)}, {"most", json(band.most)}};
}

}  // namespace

http::Response curves(Context& context, const http::Request& request) {
  const Query query(request);
  const LineQuestion question = question_of(query);
  const Drawing drawing = drawing_of(query);
  Json list = Json::array();
  for (const RunLine& run : lines_of(context.runs, named_runs(context.runs, query), question)) {
    list.push_back(curve_of(run, drawing));
  }
  return json_response({{"axis", axis_name(question.axis)},
                        {"metric", question.metric},
                        {"curves", std::move(list)}});
}

http::Response band(Context& context, const http::Request& request) {
  const Query query(request);
  const LineQuestion question = question_of(query);
  const Drawing drawing = drawing_of(query);
  const auto groups = context.runs.with_index([&](const track::RunIndex& index) {
    return groups_of(index, query.text("by"), query.text("filter"));
  });
  Json list = Json::array();
  std::exception_ptr trouble;
  for (const RunGroup& group : groups) {
    std::vector<Line> lines;
    for (const std::string& run : group.runs) {
      try {
        Line line = line_of(context.runs, run, question).line;
        if (line.x.empty()) continue;
        line.y = smoothed(line.y, drawing.smoothing);
        lines.push_back(std::move(line));
      } catch (const DataError&) {
        trouble = std::current_exception();
      }
    }
    if (lines.empty()) continue;
    Json entry{{"value", group.value}, {"runs", lines.size()}};
    entry.update(band_json(band_of(lines), drawing));
    list.push_back(std::move(entry));
  }
  if (list.empty() && trouble) std::rethrow_exception(trouble);
  return json_response({{"groups", std::move(list)}});
}

}  // namespace gallop::ui::api
