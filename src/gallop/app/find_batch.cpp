#include <algorithm>
#include <cstdio>
#include <functional>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/device.h"
#include "gallop/app/prepared_recipe.h"
#include "gallop/app/probe_child.h"
#include "gallop/app/signals.h"
#include "gallop/app/terminal.h"
#include "gallop/base/file.h"
#include "gallop/base/memory.h"
#include "gallop/base/text.h"
#include "gallop/plot/line_plot.h"
#include "gallop/schedule/batch_search.h"
#include "gallop/train/batch_probe.h"
#include "gallop/train/out_of_memory.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string recipe;
  std::string memory;
  int64_t limit_bytes = 0;
  int64_t first = 8;
  int64_t most = 0;
  train::NoiseConfig noise{.small = 0};
  double step_seconds = 20;
  std::string svg;
  bool json = false;
  std::string probe;  // What this process is to find out for another one.
  std::vector<std::string> words;
  std::vector<Override> overrides;
};

void check(const Arguments& arguments) {
  if (arguments.first < 1) throw UsageError("--min must be at least 1");
  if (arguments.most != 0 && arguments.most < arguments.first) {
    throw UsageError(fmt::format("batches from {} to {}: --max must not be below --min",
                                 arguments.first, arguments.most));
  }
  if (arguments.noise.steps < 0 || arguments.noise.warm_up < 0) {
    throw UsageError("--noise-steps and --warmup-steps must be at least 0");
  }
  if (!(arguments.step_seconds > 0)) throw UsageError("--step-seconds must be above 0");
}

bool parse(const std::vector<std::string>& words, Arguments& arguments) {
  CLI::App parser(
      "Find a batch size for a recipe: the largest that fits into memory, the one beyond which\n"
      "samples per second stop growing, and the one beyond which more samples a step bring little\n"
      "(the gradient noise scale). Each is tried in a process of its own; nothing is kept.\n\n"
      "Example: gallop find-batch fashion-mnist --memory '4 GiB'",
      "gallop find-batch");
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file")->required();
  parser
      .add_option("--memory", arguments.memory,
                  "'2 GiB': what a run may take; by default what the machine has left, or the "
                  "GPU")
      ->take_last();
  parser.add_option("--min", arguments.first, "the batch to begin with; 8 by default");
  parser.add_option("--max", arguments.most, "the largest to try; by default all samples");
  parser.add_option("--step-seconds", arguments.step_seconds,
                    "batches whose steps take longer are not tried; 20 by default");
  parser.add_option("--noise-steps", arguments.noise.steps,
                    "steps that the noise scale is measured in; 20 by default, 0 for none");
  parser.add_option("--warmup-steps", arguments.noise.warm_up,
                    "steps that are trained before; 100 by default");
  parser.add_option("--svg", arguments.svg, "FILE: draw the curves there, for a browser");
  parser.add_flag("--json", arguments.json, "print JSON");
  parser.add_option("--probe", arguments.probe)->group("");
  arguments.words = words;
  std::vector<std::string> rest = words;
  arguments.overrides = take_overrides(rest);
  if (!parse_arguments(parser, rest)) return false;
  if (!arguments.memory.empty()) {
    const auto bytes = parse_bytes(arguments.memory);
    if (!bytes) {
      throw UsageError(fmt::format("--memory is an amount such as '2 GiB' or '512 MiB', not '{}'",
                                   printable(arguments.memory)));
    }
    arguments.limit_bytes = *bytes;
  }
  check(arguments);
  return true;
}

// What follows runs in a process of its own.

Json probe_speed(PreparedRecipe& prepared, const StopRequest& stop) {
  const data::Batch samples = prepared.first_batch(prepared.recipe().data.batch);
  const auto speed = train::time_batch(prepared.model(), prepared.optimizer(),
                                       prepared.step_config(), samples, stop);
  if (!speed) return {};
  if (speed->splits > 1) tell_no_memory("micro-batches had to be split");
  Json result = {{"batch", samples.size()},
                 {"samples", prepared.data().train->size()},
                 {"samples_per_second", static_cast<double>(samples.size()) / speed->step_seconds}};
  if (prepared.device().is_cpu()) {
    result["bytes"] = peak_resident_bytes();
  } else {
    auto* const allocator = at::getDeviceAllocator(prepared.device().type());
    const c10::DeviceIndex index = prepared.device().index();
    result["bytes"] = allocator->getDeviceStats(index).reserved_bytes[0].peak;  // Of all kinds.
    result["device_bytes"] = allocator->getMemoryInfo(index).second;
  }
  return result;
}

Json probe_noise(PreparedRecipe& prepared, train::NoiseConfig config, const StopRequest& stop) {
  config.small = prepared.recipe().data.batch;
  if (config.small * config.parts > prepared.data().train->size()) return {{"too_few", true}};
  const auto noise =
      train::measure_noise({prepared.model(), prepared.optimizer(), *prepared.data().train, stop},
                           config, prepared.step_config(), prepared.training_loader());
  if (stop.requested()) return {};
  Json result = {{"small", config.small}, {"big", config.small * config.parts}};
  if (noise && noise->batch()) result["batch"] = *noise->batch();
  return result;
}

ExitCode run_as_probe(const Arguments& arguments, const StopRequest& stop) {
  become_probe();
  const Families families;
  ResolvedRecipe resolved = load_recipe(families, arguments.recipe, arguments.overrides);
  std::optional<MemoryWatch> watch;
  if (choose_device(resolved.recipe.train.device).device.is_cpu()) {
    watch.emplace(arguments.limit_bytes, [&] {
      tell_no_memory(fmt::format("more than {}", format_bytes(arguments.limit_bytes)));
    });
  }
  Json result;
  const auto full = train::run_in_memory([&] {
    PreparedRecipe prepared(families, std::move(resolved));
    result = arguments.probe == "noise" ? probe_noise(prepared, arguments.noise, stop)
                                        : probe_speed(prepared, stop);
  });
  if (full) tell_no_memory(*full);
  if (result.is_null()) return ExitCode::kStopped;
  tell_result(result.dump());
  return ExitCode::kDone;
}

// And this in the one that starts them.

struct Stopped {};

class Prober {
 public:
  Prober(Arguments& arguments, const StopRequest& stop) : arguments_(arguments), stop_(stop) {}

  // Nothing where it does not fit.
  std::optional<Json> run(const std::string& probe, int64_t batch) {
    std::vector<std::string> words = {"find-batch"};
    words.insert(words.end(), arguments_.words.begin(), arguments_.words.end());
    for (const std::string& word :
         {std::string("--probe"), probe, std::string("--memory"),
          fmt::format("{} bytes", arguments_.limit_bytes), fmt::format("data.batch={}", batch)}) {
      words.push_back(word);
    }
    const ProbeResult result = run_probe(words, stop_);
    if (result.kind == ProbeResult::Kind::kStopped) throw Stopped();
    if (result.kind == ProbeResult::Kind::kNoMemory) {
      why_full_ = result.text;
      return {};
    }
    return Json::parse(result.text);
  }

  std::optional<schedule::BatchPoint> try_batch(int64_t batch) {
    const auto found = run("speed", batch);
    if (!found) return {};
    samples_ = found->at("samples");
    if (arguments_.memory.empty() && found->contains("device_bytes")) {
      arguments_.limit_bytes = found->at("device_bytes");
    }
    if (found->at("bytes").get<int64_t>() > arguments_.limit_bytes) {
      why_full_ = fmt::format("more than {}", format_bytes(arguments_.limit_bytes));
      return {};
    }
    return schedule::BatchPoint{.batch = found->at("batch"),
                                .samples_per_second = found->at("samples_per_second"),
                                .bytes = found->at("bytes")};
  }

  int64_t samples() const { return samples_; }
  const std::string& why_full() const { return why_full_; }

 private:
  Arguments& arguments_;
  const StopRequest& stop_;
  int64_t samples_ = 0;
  std::string why_full_;
};

struct Found {
  schedule::BatchSearch search;
  std::optional<double> critical;
  int64_t small = 0, big = 0;
};

std::string describe(const schedule::BatchPoint& point) {
  return fmt::format("{:>9} {:>13} {:>12}", format_count(point.batch),
                     format_count(static_cast<int64_t>(point.samples_per_second)),
                     format_bytes(point.bytes));
}

std::vector<plot::LinePlot> curves(const std::string& name, const Found& found) {
  plot::Series speed{.name = "samples/s", .x = {}, .y = {}},
      memory{.name = "MiB", .x = {}, .y = {}};
  for (const auto& point : found.search.points) {
    speed.x.push_back(static_cast<double>(point.batch));
    speed.y.push_back(point.samples_per_second);
    memory.x.push_back(static_cast<double>(point.batch));
    memory.y.push_back(static_cast<double>(point.bytes) / 0x1p20);
  }
  const plot::Axis batches{.label = "batch", .scale = plot::Scale::kLog};
  plot::LinePlot speeds{.title = name + ": samples per second by batch",
                        .x = batches,
                        .y = {.label = "samples/s", .min = 0},
                        .series = {speed}};
  speeds.marks.push_back({.x = static_cast<double>(schedule::fastest_from(found.search.points)),
                          .label = "fastest from"});
  if (found.critical) speeds.marks.push_back({.x = *found.critical, .label = "critical"});
  return {speeds,
          {.title = name + ": memory by batch",
           .x = batches,
           .y = {.label = "MiB", .min = 0},
           .series = {memory}}};
}

void print_json(const Arguments& arguments, const Found& found) {
  Json object = {{"recipe", arguments.recipe}, {"memory", arguments.limit_bytes}};
  for (const auto& point : found.search.points) {
    object["points"].push_back({{"batch", point.batch},
                                {"samples_per_second", point.samples_per_second},
                                {"bytes", point.bytes}});
  }
  object["largest"] = found.search.largest();
  if (found.search.too_large) object["too_large"] = *found.search.too_large;
  object["cut_short"] = found.search.cut_short;
  object["fastest_from"] = schedule::fastest_from(found.search.points);
  if (found.critical) object["critical"] = *found.critical;
  object["batch"] = schedule::suggested_batch(found.search, found.critical);
  fmt::print("{}\n", object.dump());
}

std::string why_largest(const Found& found, int64_t most, const std::string& why_full) {
  if (found.search.too_large) {
    return fmt::format("that fits; {} does not: {}", format_count(*found.search.too_large),
                       why_full);
  }
  if (found.search.largest() >= most) return "and there is room for all that may be tried";
  return found.search.cut_short ? "that was tried and fits; steps of larger ones take long"
                                : "that was tried and fits";
}

void print_table(const Found& found, int64_t most, const std::string& why_full) {
  const auto line = [](const char* name, const std::string& value, const std::string& text) {
    fmt::print("{:<10} {:>9}  {}\n", name, value, text);
  };
  line("largest", format_count(found.search.largest()), why_largest(found, most, why_full));
  line("fastest", format_count(schedule::fastest_from(found.search.points)),
       "the smallest with 95 % of the most samples per second");
  if (found.critical) {
    line("critical", format_count(static_cast<int64_t>(*found.critical)),
         fmt::format("gradient noise scale, from batches of {} and {}: more samples a step bring "
                     "less",
                     found.small, found.big));
  } else if (found.small > 0) {
    line("critical", "-",
         "the gradients are lost in their noise, or not finite; try another "
         "--warmup-steps or more --noise-steps");
  }
  line("suggested", format_count(schedule::suggested_batch(found.search, found.critical)),
       "the fastest, but not beyond the critical one  <- data.batch");
}

// Small batches for the noise: an eighth of the recipe's.
void measure_noise(const Arguments& arguments, int64_t batch, Prober& prober, Found& found) {
  if (arguments.noise.steps == 0) return;
  constexpr int64_t kParts = 8, kFewest = 4;
  const int64_t most = std::min(found.search.largest(), prober.samples() / kParts);
  const int64_t small = std::min(std::max(kFewest, batch / kParts), std::max<int64_t>(1, most));
  const auto noise = prober.run("noise", small);
  if (!noise || noise->contains("too_few")) return;
  found.small = noise->at("small");
  found.big = noise->at("big");
  if (noise->contains("batch")) found.critical = noise->at("batch").get<double>();
}

}  // namespace

ExitCode run_find_batch(const std::vector<std::string>& arguments) {
  StopRequest stop;
  const SignalGuard signals(stop);
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  if (!parsed.probe.empty()) return run_as_probe(parsed, stop);

  const Families families;
  const ResolvedRecipe resolved = load_recipe(families, parsed.recipe, parsed.overrides);
  if (parsed.limit_bytes == 0) parsed.limit_bytes = available_memory() * 9 / 10;
  if (!parsed.json) {
    fmt::print("{}\n{:>9} {:>13} {:>12}\n", resolved.name, "batch", "samples/s", "memory");
    std::fflush(stdout);
  }
  Prober prober(parsed, stop);
  Found found;
  schedule::BatchLimits limits{.first = parsed.first,
                               .most = parsed.most > 0 ? parsed.most : int64_t{1} << 40,
                               .bytes = parsed.limit_bytes,
                               .step_seconds = parsed.step_seconds};
  try {
    found.search = schedule::search_batches(
        [&](int64_t batch) {
          const auto point = prober.try_batch(batch);
          if (prober.samples() > 0) limits.most = std::min(limits.most, prober.samples());
          limits.bytes = parsed.limit_bytes;
          if (point && !parsed.json) {
            fmt::print("{}\n", describe(*point));
            std::fflush(stdout);
          }
          return point;
        },
        limits);
    if (found.search.points.empty()) {
      throw DeviceError(
          fmt::format("not even one sample fits into {}: {}. Try train.recompute.every=1, "
                      "train.precision=bf16, or a smaller model",
                      format_bytes(parsed.limit_bytes), prober.why_full()));
    }
    measure_noise(parsed, resolved.recipe.data.batch, prober, found);
  } catch (const Stopped&) {
    return ExitCode::kStopped;
  }
  const auto plots = curves(resolved.name, found);
  if (!parsed.svg.empty()) write_file_atomically(parsed.svg, plot::to_svg(plots, 2));
  if (parsed.json) {
    print_json(parsed, found);
  } else {
    fmt::print("\n");
    for (const auto& plot : plots) print_plot(plot);
    fmt::print("\n");
    print_table(found, limits.most, prober.why_full());
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
