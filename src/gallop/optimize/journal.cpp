#include "gallop/optimize/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/optimize/experiment_json.h"

namespace gallop::optimize {

namespace {

// The order of options does not matter.
std::string text_of(const std::vector<std::string>& options) {
  return fmt::format("[{}]",
                     fmt::join(std::set<std::string>(options.begin(), options.end()), ", "));
}

[[noreturn]] void damaged(const fs::path& file, const std::string& why) {
  throw DataError(fmt::format("{} is damaged: {}; delete it to begin again",
                              printable(file.string()), printable(why)));
}

}  // namespace

Journal::Journal(Experiments& experiments, const fs::path& file, const std::string& question)
    : experiments_(experiments), file_(file) {
  const std::string text = fs::exists(file) ? read_file(file) : std::string();
  size_t begin = 0;
  for (size_t line = 0; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    // A process that was killed may have left half a line.
    if (end == std::string::npos) break;
    try {
      const Json json = Json::parse(text.substr(begin, end - begin));
      if (line == 0) {
        if (json.at("search").get<std::string>() != question) {
          throw UsageError(fmt::format(
              "{} belongs to a search with another recipe, options, goal or version of Gallop; "
              "name another --folder, or delete it",
              printable(file.string())));
        }
      } else {
        results_[json.at("experiment").get<std::string>()] = {json.at("result").dump(),
                                                              json.at("seconds").get<double>()};
      }
    } catch (const nlohmann::json::exception& error) {
      damaged(file, error.what());
    }
    begin = end + 1;
  }
  known_ = results_.size();
  if (begin < text.size() && truncate(file.c_str(), static_cast<off_t>(begin)) != 0) {
    throw DeviceError(fmt::format("cannot write {}: {}", printable(file.string()),
                                  std::generic_category().message(errno)));
  }
  if (begin == 0) append(Json({{"search", question}}).dump());
}

void Journal::append(const std::string& line) {
  const FileDescriptor file(open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const std::string text = line + "\n";
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(file.get()) != 0) {
    throw DeviceError(fmt::format("cannot write {}: {}", printable(file_.string()),
                                  std::generic_category().message(errno)));
  }
}

std::string Journal::result_of(const std::string& experiment,
                               const std::function<std::string()>& run) {
  const auto known = results_.find(experiment);
  if (known != results_.end()) {
    seconds_ += known->second.seconds;
    known->second.seconds = 0;  // It is not made again.
    return known->second.json;
  }
  const double begin = monotonic_seconds();
  const std::string json = run();
  const double seconds = monotonic_seconds() - begin;
  append(Json({{"experiment", experiment}, {"seconds", seconds}, {"result", Json::parse(json)}})
             .dump());
  results_[experiment] = {json, 0};
  seconds_ += seconds;
  return json;
}

Settings Journal::settings(const std::vector<std::string>& options) {
  return settings_of(Json::parse(result_of("settings " + text_of(options), [&] {
    return json_of(experiments_.settings(options)).dump();
  })));
}

std::vector<Prediction> Journal::predict(const std::vector<std::string>& options) {
  return predictions_of(Json::parse(result_of("profile " + text_of(options), [&] {
    return json_of(experiments_.predict(options)).dump();
  })));
}

Comparison Journal::compare(const std::vector<std::string>& base,
                            const std::vector<std::string>& changed) {
  const std::string experiment = fmt::format("compare {} with {}", text_of(base), text_of(changed));
  return comparison_of(Json::parse(
      result_of(experiment, [&] { return json_of(experiments_.compare(base, changed)).dump(); })));
}

TrainingResult Journal::train(const std::vector<std::string>& options, int64_t seed) {
  const std::string experiment = fmt::format("train {} with seed {}", text_of(options), seed);
  return run_of(Json::parse(
      result_of(experiment, [&] { return json_of(experiments_.train(options, seed)).dump(); })));
}

std::optional<double> Journal::find_lr(const std::vector<std::string>& options) {
  const Json json = Json::parse(result_of("find-lr " + text_of(options), [&] {
    const auto lr = experiments_.find_lr(options);
    return (lr ? Json(*lr) : Json()).dump();
  }));
  if (json.is_null()) return std::nullopt;
  return json.get<double>();
}

}  // namespace gallop::optimize
