#include <utility>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/track/run_samples.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/api.h"
#include "gallop/ui/api/images.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/api/run_choice.h"

namespace gallop::ui::api {

namespace {

struct Found {
  fs::path folder;
  track::RunSamples samples;
};

Found find_samples(Context& context, const Query& query) {
  const std::string run = row_of(context.runs, query.needed("name")).name;
  const fs::path folder = context.runs.path_of(run);
  auto samples = track::read_run_samples(folder);
  if (!samples) throw Refusal(404, fmt::format("'{}' has no samples", printable(run)));
  return {track::run_samples_of(folder), std::move(*samples)};
}

}  // namespace

http::Response run_samples(Context& context, const http::Request& request) {
  const Found found = find_samples(context, Query(request));
  Json list = Json::array();
  for (const auto& one : found.samples.samples) {
    list.push_back(
        {{"label", one.label}, {"image", one.image}, {"before", one.before}, {"text", one.text}});
  }
  return json_response(
      {{"augmented_by", found.samples.augmented_by}, {"samples", std::move(list)}});
}

http::Response run_sample_image(Context& context, const http::Request& request) {
  const Query query(request);
  const Found found = find_samples(context, query);
  std::vector<std::string> listed;
  for (const auto& one : found.samples.samples) {
    listed.insert(listed.end(), {one.image, one.before});
  }
  return image_response(found.folder, listed, query.needed("image"));
}

}  // namespace gallop::ui::api
