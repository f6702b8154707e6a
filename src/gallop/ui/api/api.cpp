#include "gallop/ui/api/api.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/ui/api/answer.h"

namespace gallop::ui::api {

namespace {

struct EndPoint {
  const char* path;
  bool changes;  ///< Requires POST.
  http::Response (*answer)(Context&, const http::Request&);
};

constexpr EndPoint kEndPoints[] = {
    {"/api/session", false, session},
    {"/api/columns", false, columns},
    {"/api/runs", false, runs},
    {"/api/groups", false, groups},
    {"/api/curves", false, curves},
    {"/api/band", false, band},
    {"/api/export.csv", false, export_csv},
    {"/api/plot.svg", false, plot_svg},
    {"/api/run", false, run},
    {"/api/run/recipe", false, run_recipe},
    {"/api/run/log", false, run_log},
    {"/api/run/report", false, run_report},
    {"/api/run/figure", false, run_figure},
    {"/api/run/image", false, run_image},
    {"/api/run/schedule", false, run_schedule},
    {"/api/run/samples", false, run_samples},
    {"/api/run/samples/image", false, run_sample_image},
    {"/api/run/profiles", false, run_profiles},
    {"/api/run/profile", false, run_profile},
    {"/api/run/profile/trace", false, run_trace},
    {"/metrics", false, prometheus},
    {"/api/compare", false, compare},
    {"/api/sweeps", false, sweeps},
    {"/api/sweep", false, sweep},
    {"/api/sweep/plot.svg", false, sweep_plot},
    {"/api/searches", false, searches},
    {"/api/search", false, search},
    {"/api/search/plot.svg", false, search_plot},
    {"/api/events", false, events},
    {"/api/tag", true, tag},
    {"/api/note", true, note},
    {"/api/delete", true, delete_run},
    {"/api/restore", true, restore_run},
};

http::Response call(Context& context, const http::Request& request) {
  const auto* const found =
      std::find_if(std::begin(kEndPoints), std::end(kEndPoints),
                   [&](const EndPoint& one) { return request.path == one.path; });
  if (found == std::end(kEndPoints)) {
    throw Refusal(404, fmt::format("'{}' does not exist", printable(request.path)));
  }
  if ((request.method == "POST") != found->changes) {
    throw Refusal(405,
                  fmt::format("'{}' requires {}", found->path, found->changes ? "POST" : "GET"));
  }
  return found->answer(context, request);
}

int status_of(const Error& error) {
  switch (error.code()) {
    case ExitCode::kUsage: return 400;
    case ExitCode::kData: return 422;
    default: return 500;
  }
}

}  // namespace

http::Response answer(Context& context, const http::Request& request) {
  try {
    return call(context, request);
  } catch (const Refusal& refusal) {
    return error_response(refusal.status(), refusal.what());
  } catch (const Error& error) {
    return error_response(status_of(error), error.what());
  } catch (const std::exception& error) {
    return error_response(500, printable(error.what()));
  }
}

http::Response session(Context& context, const http::Request& /*request*/) {
  const size_t count =
      context.runs.with_index([](const track::RunIndex& index) { return index.rows().size(); });
  return json_response({{"token", context.token},
                        {"version", context.version},
                        {"folder", context.runs.locations().runs.string()},
                        {"now", seconds_since_1970()},
                        {"runs", count}});
}

}  // namespace gallop::ui::api
