#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/track/class_report.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/images.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

struct Found {
  fs::path folder;
  track::ClassReport report;
};

Found find_report(Context& context, const Query& query) {
  const std::string run = row_of(context.runs, query.needed("name")).name;
  const fs::path folder = context.runs.path_of(run);
  auto report = track::read_class_report(folder);
  if (!report) throw Refusal(404, fmt::format("'{}' has no report", printable(run)));
  return {folder, std::move(*report)};
}

}  // namespace

http::Response run_report(Context& context, const http::Request& request) {
  const Found found = find_report(context, Query(request));
  Json mistakes = Json::array();
  for (const auto& mistake : found.report.mistakes) {
    mistakes.push_back({{"image", mistake.image},
                        {"width", mistake.width},
                        {"height", mistake.height},
                        {"truth", mistake.truth},
                        {"guess", mistake.guess},
                        {"probability", number_json(mistake.probability)}});
  }
  return json_response({{"step", found.report.step},
                        {"part", found.report.part},
                        {"classes", found.report.classes},
                        {"counts", found.report.counts},
                        {"mistakes", std::move(mistakes)}});
}

http::Response run_image(Context& context, const http::Request& request) {
  const Query query(request);
  const Found found = find_report(context, query);
  std::vector<std::string> listed;
  for (const auto& mistake : found.report.mistakes) listed.push_back(mistake.image);
  return image_response(track::class_report_of(found.folder), listed, query.needed("image"));
}

}  // namespace gallop::ui::api
