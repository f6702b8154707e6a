#include "gallop/app/identity.h"

namespace gallop::app {

namespace {

constexpr int64_t kMostBytes = int64_t{16} << 30;

}  // namespace

track::IdentityQuestion identity_question(const DataPaths& data, const fs::path& runs, int64_t step,
                                          const std::vector<std::string>& plugins) {
  track::IdentityQuestion question{.step = step,
                                   .version = GALLOP_VERSION,
                                   .plugins = plugins,
                                   .cache = user_cache_folder() / "contents",
                                   .listings = track::listings_of(runs)};
  question.limits.bytes = kMostBytes;
  const auto absolute = [](const std::string& path) {
    return fs::absolute(path).lexically_normal().string();
  };
  for (const std::string& path : data.paths) question.data.push_back(absolute(path));
  for (const NamedFiles& files : data.named) {
    question.named_data.push_back({.folder = absolute(files.folder), .names = files.names});
  }
  return question;
}

}  // namespace gallop::app
