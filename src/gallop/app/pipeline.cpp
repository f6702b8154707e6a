#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/json_line.h"
#include "gallop/app/non_negative.h"
#include "gallop/app/output_file.h"
#include "gallop/base/text.h"
#include "gallop/parallel/pipeline_drawing.h"
#include "gallop/parallel/pipeline_schedule.h"
#include "gallop/parallel/pipeline_simulation.h"

namespace gallop::app {

namespace {

using parallel::PipelineSchedule;
using parallel::PipelineTimeline;

constexpr size_t kColumns = 120, kHelpColumns = 96;

struct Arguments {
  std::string schedule;
  int ranks = 4, micro_batches = 8, stages_per_rank = 0;
  double forward = 1, input_gradient = 1, weight_gradient = 1, transfer = 0;
  std::string svg;
  bool json = false;
};

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  std::string kinds;
  for (const auto& kind : parallel::pipeline_schedules()) {
    kinds += "  " + wrapped(fmt::format("{:<17} {}", kind.name, kind.help), kHelpColumns,
                            std::string(20, ' '));
  }
  CLI::App parser(
      "Draw a pipeline schedule: when each rank computes which pass of which micro-batch, how "
      "long\na step takes, and how long ranks wait. Without SCHEDULE, compare all schedules.\n\n"
      "Schedules:\n" +
          kinds +
          "\nExamples: gallop pipeline --ranks 4 --micro-batches 8\n"
          "          gallop pipeline zbv --ranks 4 --micro-batches 8 --svg zbv.svg",
      "gallop pipeline");
  parser.add_option("SCHEDULE", arguments.schedule, "one of the schedules above");
  parser
      .add_option("--ranks", arguments.ranks,
                  "number of ranks, each with some of the layers; 4 by default")
      ->check(CLI::Range(1, 4096));
  parser
      .add_option("--micro-batches", arguments.micro_batches,
                  "micro-batches per batch; 8 by default")
      ->check(CLI::Range(1, 65536));
  parser
      .add_option("--stages-per-rank", arguments.stages_per_rank,
                  "stages on each rank; default: the minimum of the schedule")
      ->check(CLI::Range(1, 64));
  const auto add_time = [&](const char* option, double& time, const char* help) {
    parser.add_option(option, time, help)->check(non_negative());
  };
  add_time("--forward", arguments.forward,
           "time of the forward pass of one micro-batch on a rank, in any unit; 1");
  add_time("--input-gradient", arguments.input_gradient,
           "time of the backward pass for the gradients of inputs; 1");
  add_time("--weight-gradient", arguments.weight_gradient,
           "time of the backward pass for the gradients of weights; 1");
  add_time("--transfer", arguments.transfer,
           "time to send the result of a pass to another rank; 0");
  parser.add_option("--svg", arguments.svg, "draw the schedule into this SVG file");
  parser.add_flag("--json", arguments.json, "print JSON");
  return parse_arguments(parser, args);
}

struct Planned {
  PipelineSchedule schedule;
  PipelineTimeline timeline;

  double held() const { return std::ranges::max(parallel::held_micro_batches(schedule)); }
};

Planned plan(const Arguments& arguments, const std::string& name) {
  auto schedule = parallel::make_pipeline_schedule(name, arguments.ranks, arguments.micro_batches,
                                                   arguments.stages_per_rank);
  const auto costs = parallel::PipelineCosts::of_equal_stages(
      schedule, arguments.forward, arguments.input_gradient, arguments.weight_gradient,
      arguments.transfer);
  auto timeline = parallel::simulate(schedule, costs);
  return {.schedule = std::move(schedule), .timeline = std::move(timeline)};
}

nlohmann::ordered_json json_of(const Planned& planned, bool with_actions) {
  nlohmann::ordered_json object = {{"schedule", planned.schedule.name},
                                   {"ranks", planned.schedule.ranks},
                                   {"stages_per_rank", planned.schedule.stages_per_rank},
                                   {"micro_batches", planned.schedule.micro_batches},
                                   {"makespan", planned.timeline.makespan},
                                   {"bubble", planned.timeline.bubble()},
                                   {"held_micro_batches", planned.held()}};
  if (!with_actions) return object;
  for (const auto& spans : planned.timeline.ranks) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& span : spans) {
      list.push_back(
          {{"action", parallel::text_of(span.action)}, {"begin", span.begin}, {"end", span.end}});
    }
    object["timeline"].push_back(std::move(list));
  }
  return object;
}

// All schedules with these numbers, or why one does not allow them.
void compare(const Arguments& arguments) {
  auto objects = nlohmann::ordered_json::array();
  std::string table = fmt::format(
      "{} ranks, {} micro-batches\n\n{:<17} {:>6} {:>10} {:>9} {:>20}\n", arguments.ranks,
      arguments.micro_batches, "schedule", "stages", "time", "waiting", "held micro-batches");
  for (const auto& kind : parallel::pipeline_schedules()) {
    try {
      const Planned planned = plan(arguments, kind.name);
      objects.push_back(json_of(planned, false));
      table += fmt::format("{:<17} {:>6} {:>10.5g} {:>7.1f} % {:>20.4g}\n", kind.name,
                           planned.schedule.stages(), planned.timeline.makespan,
                           100 * planned.timeline.bubble(), planned.held());
    } catch (const UsageError& error) {
      objects.push_back({{"schedule", kind.name}, {"error", error.what()}});
      table += fmt::format("{:<17} {}\n", kind.name, error.what());
    }
  }
  fmt::print("{}", arguments.json ? json_line(objects) + "\n" : table);
}

}  // namespace

ExitCode run_pipeline(const CommandContext& /*command*/,
                      const std::vector<std::string>& arguments) {
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  if (parsed.schedule.empty()) {
    if (!parsed.svg.empty()) throw UsageError("--svg needs the SCHEDULE to draw");
    compare(parsed);
    return ExitCode::kDone;
  }
  const Planned planned = plan(parsed, parsed.schedule);
  const std::string title = fmt::format("{}: {} ranks, {} stages, {} micro-batches",
                                        planned.schedule.name, planned.schedule.ranks,
                                        planned.schedule.stages(), planned.schedule.micro_batches);
  if (!parsed.svg.empty()) {
    write_output(parsed.svg, parallel::timeline_svg(planned.schedule, planned.timeline, title, ""));
  }
  if (parsed.json) {
    fmt::print("{}\n", json_line(json_of(planned, true)));
    return ExitCode::kDone;
  }
  fmt::print(
      "{}\ntime {:.5g}; ranks wait {:.1f} % of it; a rank holds the activations of up to {:.4g} "
      "micro-batches\n",
      title, planned.timeline.makespan, 100 * planned.timeline.bubble(), planned.held());
  if (parsed.svg.empty()) {
    fmt::print("\n{}", parallel::timeline_text(planned.schedule, planned.timeline, kColumns));
  } else {
    fmt::print("the drawing is in {}\n", parsed.svg);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
