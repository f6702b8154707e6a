#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/json_line.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/which_study.h"
#include "gallop/app/tune/worker.h"
#include "gallop/base/shell.h"
#include "gallop/tune/lineage.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/trial_args.h"

namespace gallop::app {

namespace {

using Json = nlohmann::ordered_json;
using tune::Segment;

/// The lineage of a trial's weights as text, as JSON, and as commands that reproduce it.
class Schedule {
 public:
  Schedule(const Registries& registries, const tune::Study& study, int64_t trial)
      : study_(study),
        trial_(trial_at(study, trial)),
        spec_(tune::parse_run_spec(study.settings().run)),
        unit_(report_unit(registries, study.settings(), spec_)),
        segments_(tune::lineage(study, trial)) {}

  std::string commands() const {
    std::string text;
    for (size_t i = 0; i < segments_.size(); ++i) text += command(i) + "\n";
    return text;
  }

  std::string text() const {
    std::string text = fmt::format(
        "trial {}: {}, in {} of one point each\n", trial_.number, values_text(study_, trial_),
        segments_.size() == 1 ? "1 segment" : fmt::format("{} segments", segments_.size()));
    for (const Segment& segment : segments_) {
      std::string trials;
      for (const int64_t one : segment.trials) {
        trials += fmt::format("{}{}", trials.empty() ? "" : ", ", one);
      }
      text += fmt::format("  {}, trial {}: {}\n", places(segment), trials,
                          point_text(study_, trial_at(study_, segment.trials.front()), 0));
    }
    return text + "again:\n" + commands();
  }

  Json json() const {
    Json json{{"trial", trial_.number}, {"segments", Json::array()}};
    for (size_t i = 0; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      json["segments"].push_back(
          {{"first_step", segment.first_step},
           {"last_step", segment.last_step},
           {"trials", segment.trials},
           {"parameters", Json::parse(parameters_json(study_.space(), segment.point))},
           {"command", command(i)}});
    }
    return json;
  }

 private:
  // "2 to 4 epochs", "steps 2 to 4"
  std::string places(const Segment& segment) const {
    if (spec_.recipe.empty()) {
      return fmt::format("steps {} to {}", segment.first_step, segment.last_step);
    }
    const std::string first = unit_.until(segment.first_step);
    return fmt::format("{} to {}", first.substr(0, first.find(' ')),
                       unit_.until(segment.last_step));
  }

  // A trial that ran to its end is reproduced to its end.
  bool has_end(size_t index) const {
    return index + 1 < segments_.size() || trial_.last_step > 0 ||
           trial_.state != tune::TrialState::kComplete;
  }

  std::string name(size_t index) const {
    return fmt::format("{}-{}-{}", study_.settings().name, trial_.number, index + 1);
  }

  std::string command(size_t index) const {
    return spec_.recipe.empty() ? command_line(index) : training(index);
  }

  std::string training(size_t index) const {
    const Segment& segment = segments_[index];
    std::vector<std::string> args = {"gallop", "train", spec_.recipe, "--name", name(index)};
    if (index > 0) args.insert(args.end(), {"--from", name(index - 1)});
    if (has_end(index)) args.insert(args.end(), {"--until", unit_.until(segment.last_step)});
    for (auto& option : recipe_options(spec_, study_.space(), segment.point)) {
      args.push_back(std::move(option));
    }
    return shell_line(args);
  }

  // With the environment variables that a trial's command gets.
  std::string command_line(size_t index) const {
    const auto folder = [this](size_t i) { return shell_word("runs/" + name(i)); };
    std::string line = fmt::format("GALLOP_TRIAL_NUMBER={} GALLOP_TRIAL_FOLDER={} ",
                                   segments_[index].trials.back(), folder(index));
    if (index > 0) line += fmt::format("GALLOP_TRIAL_PARENT_FOLDER={} ", folder(index - 1));
    if (has_end(index)) {
      line += fmt::format("GALLOP_TRIAL_LAST_STEP={} ", segments_[index].last_step);
    }
    const tune::Trial& trial = trial_at(study_, segments_[index].trials.back());
    return line + tune::command_line(spec_, study_.space(), segments_[index].point, trial.folder);
  }

  const tune::Study& study_;
  const tune::Trial& trial_;
  tune::RunSpec spec_;
  ReportUnit unit_;
  std::vector<Segment> segments_;
};

bool is_of_population(const tune::Trial& trial) { return trial.member >= 0 || trial.parent >= 0; }

// "continues trial 4", with its member if that is a different one.
std::string origin(const tune::Study& study, const tune::Trial& trial) {
  if (trial.parent < 0) return "begins";
  const tune::Trial& parent = trial_at(study, trial.parent);
  if (parent.member == trial.member) return fmt::format("continues trial {}", parent.number);
  return fmt::format("continues trial {} of member {}", parent.number, parent.member);
}

void print_trials(const tune::Study& study) {
  for (const tune::Trial& trial : study.trials()) {
    if (!is_of_population(trial)) continue;
    fmt::print("trial {:<4} member {:<3} {:<35} {:<9} {:<18} {}\n", trial.number, trial.member,
               origin(study, trial), tune::state_name(trial.state), values_text(study, trial),
               point_text(study, trial, 4));
  }
}

Json trials_json(const tune::Study& study) {
  Json trials = Json::array();
  for (const tune::Trial& trial : study.trials()) {
    if (!is_of_population(trial)) continue;
    Json json = Json::parse(trial_json(study, trial));
    json["member"] = trial.member;
    json["last_step"] = trial.last_step;
    trials.push_back(std::move(json));
  }
  return trials;
}

}  // namespace

ExitCode tune_lineage(const CommandContext& command, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Show the lineage of a population: which trial continued whose checkpoint, with which\n"
      "options; and how to train its best member, or another trial, again with the same changes "
      "of\n"
      "options during the training.\n\n"
      "Example: gallop tune lineage my-study",
      "gallop tune lineage");
  WhichStudy which;
  which.add_to(parser);
  int64_t number = -1;
  bool json = false, commands = false;
  parser.add_option("--trial", number, "trial; the best by default");
  auto* as_json = parser.add_flag("--json", json, "print JSON");
  parser.add_flag("--commands", commands, "print only the commands that train it again")
      ->excludes(as_json);
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const tune::StudyPlace place = which.find();
  const tune::Study study = place.read();
  std::optional<int64_t> shown;
  if (number >= 0) shown = number;
  if (!shown && study.objectives() == 1) shown = study.best();
  if (commands && !shown) throw UsageError("no trial is complete yet; specify --trial NUMBER");
  std::optional<Schedule> schedule;
  if (shown) schedule.emplace(command.registries(), study, *shown);
  if (json) {
    Json all = Json::object();
    if (number < 0) all["trials"] = trials_json(study);
    if (schedule) all["schedule"] = schedule->json();
    fmt::print("{}\n", json_line(all));
    return ExitCode::kDone;
  }
  if (commands) {
    fmt::print("{}", schedule->commands());
    return ExitCode::kDone;
  }
  const bool has_population = std::any_of(study.trials().begin(), study.trials().end(),
                                          [](const auto& one) { return is_of_population(one); });
  if (!has_population && !schedule) {
    throw UsageError(
        fmt::format("no trial of {} belongs to a population (samplers pbt and pb2); specify "
                    "--trial NUMBER to reproduce a trial",
                    place.name));
  }
  if (number < 0) print_trials(study);
  if (schedule) fmt::print("{}{}", number < 0 ? "\n" : "", schedule->text());
  return ExitCode::kDone;
}

}  // namespace gallop::app
