#include <utility>

#include "gallop/track/evaluation_report.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/images.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

Kept<track::EvaluationReport> find_report(Context& context, const Query& query) {
  return kept_by_run(context.runs, query, "report", track::read_evaluation_report);
}

}  // namespace

http::Response run_report(Context& context, const http::Request& request) {
  const auto report = find_report(context, Query(request)).value;
  Json mistakes = Json::array();
  for (const auto& mistake : report.mistakes) {
    mistakes.push_back({{"image", mistake.image},
                        {"width", mistake.width},
                        {"height", mistake.height},
                        {"truth", mistake.truth},
                        {"guess", mistake.guess},
                        {"probability", number_json(mistake.probability)}});
  }
  Json overlays = Json::array();
  for (const auto& overlay : report.overlays) {
    const bool is_first = overlay.group == track::EvaluationReport::Overlay::Group::kFirst;
    overlays.push_back({{"group", is_first ? "first" : "lowest-iou"},
                        {"sample", overlay.sample},
                        {"iou", overlay.iou ? number_json(*overlay.iou) : Json()},
                        {"image", overlay.image},
                        {"truth", overlay.truth},
                        {"prediction", overlay.prediction},
                        {"differences", overlay.differences}});
  }
  Json figures = Json::array();
  for (const auto& figure : report.figures) {
    figures.push_back({{"name", figure.name}, {"title", figure.title}});
  }
  return json_response({{"step", report.step},
                        {"part", report.part},
                        {"figures", std::move(figures)},
                        {"classes", report.classes},
                        {"counts", report.counts},
                        {"mistakes", std::move(mistakes)},
                        {"overlays", std::move(overlays)},
                        {"colors", report.colors}});
}

http::Response run_figure(Context& context, const http::Request& request) {
  const Query query(request);
  const auto found = find_report(context, query);
  std::vector<std::string> listed;
  for (const auto& figure : found.value.figures) listed.push_back(track::figure_file(figure.name));
  return image_response(track::evaluation_report_of(found.run), listed,
                        track::figure_file(query.needed("figure")), "image/svg+xml");
}

http::Response run_image(Context& context, const http::Request& request) {
  const Query query(request);
  const auto found = find_report(context, query);
  std::vector<std::string> listed;
  for (const auto& mistake : found.value.mistakes) listed.push_back(mistake.image);
  for (const auto& one : found.value.overlays) {
    listed.insert(listed.end(), {one.image, one.truth, one.prediction, one.differences});
  }
  return image_response(track::evaluation_report_of(found.run), listed, query.needed("image"));
}

}  // namespace gallop::ui::api
