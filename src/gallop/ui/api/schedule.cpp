#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/track/run_schedule.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

http::Response run_schedule(Context& context, const http::Request& request) {
  const std::string run = row_of(context.runs, Query(request).needed("name")).name;
  const auto schedule = track::read_run_schedule(context.runs.path_of(run));
  if (!schedule) throw Refusal(404, fmt::format("'{}' has no schedule", printable(run)));
  Json lines = Json::array();
  for (const auto& line : schedule->lines) {
    lines.push_back({{"metric", line.metric},
                     {"schedule", line.schedule},
                     {"follows_evaluations", line.follows_evaluations},
                     {"values", numbers_json(line.values)}});
  }
  return json_response({{"steps", schedule->steps},
                        {"steps_per_epoch", schedule->steps_per_epoch},
                        {"at", schedule->at},
                        {"lines", std::move(lines)}});
}

}  // namespace gallop::ui::api
