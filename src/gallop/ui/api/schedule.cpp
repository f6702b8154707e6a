#include "gallop/track/run_schedule.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

http::Response run_schedule(Context& context, const http::Request& request) {
  const auto schedule =
      kept_by_run(context.runs, Query(request), "schedule", track::read_run_schedule).value;
  Json lines = Json::array();
  for (const auto& line : schedule.lines) {
    lines.push_back({{"metric", line.metric},
                     {"schedule", line.schedule},
                     {"follows_evaluations", line.follows_evaluations},
                     {"values", numbers_json(line.values)}});
  }
  return json_response({{"steps", schedule.steps},
                        {"steps_per_epoch", schedule.steps_per_epoch},
                        {"at", schedule.at},
                        {"lines", std::move(lines)}});
}

}  // namespace gallop::ui::api
