#include "gallop/ui/api/run_line.h"

#include <exception>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_summary.h"

namespace gallop::ui::api {

namespace {

using Options = std::map<std::string, std::string>;

double option_of(const std::string& run, const Options& options, const std::string& name) {
  const auto found = options.find(name);
  const auto number =
      found != options.end() ? parse_number<double>(found->second) : std::optional<double>();
  if (number && *number > 0) return *number;
  throw DataError(fmt::format("{}: its recipe has no numeric {}, which this axis requires",
                              printable(run), name));
}

// The units of the axis per step.
double per_step(const fs::path& folder, const std::string& run, CurveAxis axis) {
  if (axis != CurveAxis::kSamples && axis != CurveAxis::kTokens) return 1;
  const Options options = track::recipe_options(folder);
  const double samples = option_of(run, options, "data.batch_size");
  if (axis == CurveAxis::kSamples) return samples;
  const auto reader = options.find("data.name");
  if (reader == options.end() || reader->second != "text") {
    throw DataError(fmt::format("{}: only text data have tokens", printable(run)));
  }
  return samples * option_of(run, options, "data.context");
}

std::vector<double> x_of(const MetricPoints& points, CurveAxis axis, double begin, double factor) {
  std::vector<double> x;
  if (axis == CurveAxis::kWall) return points.times;
  x.reserve(points.steps.size());
  if (axis == CurveAxis::kRelative) {
    for (const double time : points.times) x.push_back(time - begin);
  } else {
    for (const int64_t step : points.steps) x.push_back(static_cast<double>(step) * factor);
  }
  return x;
}

}  // namespace

LineQuestion question_of(const Query& query) {
  LineQuestion question;
  question.metric = query.needed("metric");
  const std::string axis = query.text("axis");
  if (!axis.empty()) question.axis = parse_axis(axis);
  return question;
}

double smoothing_of(const Query& query) {
  const double smoothing = query.number("smoothing").value_or(0);
  if (smoothing >= 0 && smoothing <= 1) return smoothing;
  throw UsageError("'smoothing' must be a number from 0 to 1");
}

RunLine line_of(Runs& runs, const std::string& run, const LineQuestion& question) {
  const double factor = per_step(runs.path_of(run), run, question.axis);
  return runs.with_history(run, [&](const RunHistory& history) {
    RunLine line{.run = run, .line = {}, .points = {}};
    const auto found = history.metrics().find(question.metric);
    if (found == history.metrics().end()) return line;
    line.points = found->second;
    line.line.x = x_of(line.points, question.axis, history.begin(), factor);
    line.line.y = line.points.values;
    return line;
  });
}

std::vector<RunLine> lines_of(Runs& runs, const std::vector<std::string>& names,
                              const LineQuestion& question) {
  std::vector<RunLine> lines;
  bool is_there = false;
  std::exception_ptr trouble;
  for (const std::string& name : names) {
    try {
      lines.push_back(line_of(runs, name, question));
    } catch (const DataError& error) {
      lines.push_back({.run = name, .line = {}, .points = {}, .trouble = error.what()});
      trouble = std::current_exception();
    }
    is_there = is_there || !lines.back().line.x.empty();
  }
  if (is_there || names.empty()) return lines;
  if (trouble) std::rethrow_exception(trouble);
  std::set<std::string> known;
  for (const std::string& name : names) {
    runs.with_history(name, [&](const RunHistory& history) {
      for (const auto& [metric, points] : history.metrics()) known.insert(metric);
    });
  }
  const std::string nearest = nearest_name(question.metric, {known.begin(), known.end()});
  throw UsageError(fmt::format("none of these runs has the metric '{}'{}",
                               printable(question.metric),
                               nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
}

}  // namespace gallop::ui::api
