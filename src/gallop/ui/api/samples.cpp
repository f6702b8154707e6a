#include <utility>

#include "gallop/track/run_samples.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/images.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

Kept<track::RunSamples> find_samples(Context& context, const Query& query) {
  return kept_by_run(context.runs, query, "samples", track::read_run_samples);
}

}  // namespace

http::Response run_samples(Context& context, const http::Request& request) {
  const auto kept = find_samples(context, Query(request)).value;
  Json list = Json::array();
  for (const auto& one : kept.samples) {
    list.push_back(
        {{"label", one.label}, {"image", one.image}, {"before", one.before}, {"text", one.text}});
  }
  return json_response({{"augmented_by", kept.augmented_by}, {"samples", std::move(list)}});
}

http::Response run_sample_image(Context& context, const http::Request& request) {
  const Query query(request);
  const auto found = find_samples(context, query);
  std::vector<std::string> listed;
  for (const auto& one : found.value.samples) {
    listed.insert(listed.end(), {one.image, one.before});
  }
  return image_response(track::run_samples_of(found.run), listed, query.needed("image"));
}

}  // namespace gallop::ui::api
