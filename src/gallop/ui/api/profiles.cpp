#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/run_profiles.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

struct Named {
  std::string run;
  fs::path folder;
};

Named named_run(Context& context, const Query& query) {
  const std::string name = row_of(context.runs, query.needed("name")).name;
  return {.run = name, .folder = context.runs.path_of(name)};
}

// The profile that a request means.
int64_t step_of(const Query& query) {
  query.needed("step");
  return query.count("step", 0, kMost, 0);
}

// Refusal (404) where there is none.
std::string found(std::optional<std::string> text, const std::string& run, int64_t step) {
  if (text) return std::move(*text);
  throw Refusal(404, fmt::format("'{}' has no such profile of step {}", printable(run), step));
}

}  // namespace

http::Response run_profiles(Context& context, const http::Request& request) {
  const Named named = named_run(context, Query(request));
  const std::vector<int64_t> steps = track::run_profiles_of(named.folder);
  if (steps.empty()) throw Refusal(404, fmt::format("'{}' has no profiles", printable(named.run)));
  return json_response({{"steps", steps}});
}

http::Response run_profile(Context& context, const http::Request& request) {
  const Query query(request);
  const Named named = named_run(context, query);
  const int64_t step = step_of(query);
  const Json profile = Json::parse(
      found(track::read_run_profile(named.folder, step), named.run, step), nullptr, false);
  if (!profile.is_object()) {
    throw DataError(fmt::format("the profile of step {} is damaged", step));
  }
  return json_response(profile);
}

http::Response run_trace(Context& context, const http::Request& request) {
  const Query query(request);
  const Named named = named_run(context, query);
  const int64_t step = step_of(query);
  http::Response response;
  response.type = "application/gzip";
  response.body = found(track::read_run_trace(named.folder, step, query.count("rank", 0, kMost, 0)),
                        named.run, step);
  return response;
}

}  // namespace gallop::ui::api
