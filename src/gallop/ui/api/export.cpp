#include <cctype>

#include <fmt/format.h>

#include "gallop/base/csv.h"
#include "gallop/base/text.h"
#include "gallop/plot/plot.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"
#include "gallop/ui/api/run_line.h"

namespace gallop::ui::api {

namespace {

// A download. Its file name contains only characters that need no escaping in a header.
http::Response download(std::string type, const std::string& name, std::string body) {
  std::string plain = name;
  for (char& letter : plain) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' ||
                          letter == '-' || letter == '_';
    if (!is_plain) letter = '_';
  }
  http::Response response{.type = std::move(type), .body = std::move(body)};
  response.headers.emplace_back("Content-Disposition",
                                fmt::format("attachment; filename=\"{}\"", plain));
  return response;
}

// The axis gets its own column unless it is one of the others.
std::string csv_of(const std::vector<RunLine>& runs, const LineQuestion& question) {
  const bool has_axis = question.axis != CurveAxis::kStep && question.axis != CurveAxis::kWall;
  std::vector<std::string> fields = {"run", "metric", "step", "time", "value"};
  if (has_axis) fields.emplace_back(axis_name(question.axis));
  std::string text = csv_line(fields);
  for (const RunLine& run : runs) {
    for (size_t i = 0; i < run.line.x.size(); ++i) {
      fields = {run.run, question.metric, std::to_string(run.points.steps[i]),
                fmt::format("{}", run.points.times[i]), fmt::format("{}", run.points.values[i])};
      if (has_axis) fields.push_back(fmt::format("{}", run.line.x[i]));
      text += csv_line(fields);
    }
  }
  return text;
}

plot::Scale scale_of(const Query& query, const char* name) {
  return query.flag(name) ? plot::Scale::kLog : plot::Scale::kLinear;
}

const char* axis_label(CurveAxis axis) {
  switch (axis) {
    case CurveAxis::kWall: return "seconds since 1970";
    case CurveAxis::kRelative: return "seconds";
    default: return axis_name(axis);
  }
}

}  // namespace

http::Response export_csv(Context& context, const http::Request& request) {
  const Query query(request);
  const LineQuestion question = question_of(query);
  const auto runs = lines_of(context.runs, named_runs(context.runs, query), question);
  return download("text/csv; charset=utf-8", question.metric + ".csv", csv_of(runs, question));
}

http::Response plot_svg(Context& context, const http::Request& request) {
  const Query query(request);
  const LineQuestion question = question_of(query);
  const double smoothing = smoothing_of(query);
  plot::XyPlot plot;
  plot.title = printable(question.metric);
  plot.x.label = axis_label(question.axis);
  plot.x.scale = scale_of(query, "logx");
  plot.y.scale = scale_of(query, "logy");
  for (RunLine& run : lines_of(context.runs, named_runs(context.runs, query), question)) {
    if (run.line.x.empty()) continue;
    plot.series.push_back({.name = printable(run.run),
                           .x = std::move(run.line.x),
                           .y = smoothed(run.line.y, smoothing)});
  }
  return download("image/svg+xml", question.metric + ".svg", plot::to_svg({plot}));
}

}  // namespace gallop::ui::api
