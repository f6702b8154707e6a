#include "gallop/app/run.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "gallop/app/batch_curve.h"
#include "gallop/app/common_steps.h"
#include "gallop/app/end_of_start_up.h"
#include "gallop/app/lr_curve.h"
#include "gallop/app/print.h"
#include "gallop/app/proven_training.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/run_profiler.h"
#include "gallop/app/run_recorder.h"
#include "gallop/app/trained_model.h"
#include "gallop/app/trainer_parts.h"
#include "gallop/base/clock.h"
#include "gallop/base/file.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/data/data_paths.h"
#include "gallop/data/length_order.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/strategy.h"
#include "gallop/plot/plot.h"
#include "gallop/schedule/lr_suggestion.h"
#include "gallop/track/data_listing.h"
#include "gallop/track/log_line.h"
#include "gallop/train/checkpoint_slices.h"
#include "gallop/train/lr_range_test.h"

namespace gallop::app {

namespace {

// How the strategy divides the model, and how much of the optimizer's state, the gradients and the
// parameters is here.
std::string describe_shards(const optim::Optimizer& optimizer, parallel::Strategy* strategy) {
  const std::vector<LogicalTensor> state = optimizer.logical_state();
  const std::string how = strategy != nullptr ? strategy->describe() : std::string();
  if (!are_divided(state)) return how.empty() ? how : ": " + how;
  std::vector<std::string> parts;
  const auto add = [&parts](const char* what, int64_t here, int64_t all) {
    parts.push_back(fmt::format("{} of {} of the {}", format_bytes(here), format_bytes(all), what));
  };
  add("optimizer's state", train::bytes_of(optimizer.state()), train::bytes_of(wholes_of(state)));
  if (strategy != nullptr && strategy->forward_group() != nullptr) {
    int64_t here = 0, all = 0;
    for (const LogicalTensor& one : strategy->parameters_in_parts()) {
      here += static_cast<int64_t>(one.local.nbytes());
      all += static_cast<int64_t>(one.whole.nbytes());
    }
    const bool has_all_gradients =
        strategy->pipeline() == nullptr && !strategy->sums_each_micro_batch();
    add(has_all_gradients ? "parameters and gradients" : "parameters", here, all);
    if (strategy->sums_each_micro_batch()) {
      add("gradients", strategy->shards()->gradient_bytes().here, all);
    }
  } else if (strategy != nullptr && strategy->sums_each_micro_batch()) {
    const auto gradients = strategy->shards()->gradient_bytes();
    add("gradients", gradients.here, gradients.all);
    const auto parameters = strategy->shards()->parameter_bytes();
    if (parameters.here < parameters.all) add("parameters", parameters.here, parameters.all);
  }
  return fmt::format(": {}{} in this one", how.empty() ? how : how + "; ",
                     join_names(parts, "and"));
}

// The share of padding in training batches; empty if samples have no lengths.
std::string padding_text(const Session& session) {
  const Recipe& recipe = session.recipe();
  const auto padding = data::padding_share(
      session.data(), data::batch_order(recipe.data, static_cast<uint64_t>(recipe.train.seed)));
  if (!padding) return {};
  std::string text = fmt::format("{:.1f} % of the tokens", 100 * padding->share);
  if (recipe.data.packing) text += ", several texts in a row";
  return text;
}

constexpr const char* kOrigins = "origins.yaml";

// Records the origins of options that a resume has changed.
void add_origins(const fs::path& folder, const std::vector<OptionChange>& changes) {
  if (changes.empty() || !fs::exists(folder / kOrigins)) return;
  std::string text = read_file(folder / kOrigins);
  text += fmt::format("# from {} on, on the command line:", track::utc_now());
  for (const OptionChange& one : changes) text += fmt::format(" {}={}", one.option, one.wanted);
  write_file_atomically(folder / kOrigins, text + "\n");
}

bool is_for_people(ConsoleStyle style) {
  return style == ConsoleStyle::kLive || style == ConsoleStyle::kPlain;
}

std::vector<std::string> scheduled_names(const Session& session) {
  std::vector<std::string> names;
  for (const auto& one : session.scheduled()) names.emplace_back(train::name_of(one.value));
  return names;
}

// A run without a name is named after its recipe.
void require_run_name(const std::string& recipe) {
  try {
    track::RunFolder::check_name(recipe);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}, and give it with --name", error.what()));
  }
}

// The log of a run that was stopped before it could write one.
std::string stopped_log() {
  const double now = seconds_since_1970();
  return track::line_of({.session = 1,
                         .time = now,
                         .kind = track::kSession,
                         .texts = {{"version", GALLOP_VERSION}}}) +
         track::line_of({.session = 1, .time = now, .kind = "end", .texts = {{"how", "stopped"}}});
}

// An error about a copy of another run's checkpoint, as one about that checkpoint.
std::string with_name(std::string error, const fs::path& copy, const fs::path& original) {
  const std::string name = printable(copy.string()) + "/";
  const size_t at = error.find(name);
  if (at != std::string::npos) error.replace(at, name.size(), printable(original.string()) + "/");
  return error;
}

// Records an error that ends the run in its log.
train::Outcome run_to_its_end(train::Trainer& trainer, std::optional<RunLog>& log) {
  try {
    return trainer.run();
  } catch (const std::exception& error) {
    if (log) log->failed(error.what());
    throw;
  }
}

}  // namespace

Run::Run(ResolvedRecipe resolved, const RunOptions& options, const DistributedContext& context,
         const ResumedRun& resumed)
    : context_(context),
      options_(options),
      session_(std::move(resolved), options.runs, context.collectives(), resumed) {
  require_profiled_steps(session_);
}

track::RunInfo Run::info() const {
  track::RunInfo info{
      .version = GALLOP_VERSION, .hardware = session_.hardware(), .started = track::utc_now()};
  info.command_line = read_command_line();
  info.processes = context_.size();
  for (const auto& file : data().files) {
    std::error_code ignored;
    info.data_files.push_back({fs::absolute(file).lexically_normal().string(),
                               static_cast<int64_t>(fs::file_size(file, ignored))});
  }
  return info;
}

void Run::check_against(const RunPlan& plan) {
  const fs::path& folder = plan.folder->path();
  // A run that was stopped early may not have recorded its inputs.
  if (has_inputs(folder)) check_fits(session_.inputs(), read_inputs(folder));
  if (session_.resolved().is_auto("optimizer", "lr") && plan.checkpoint) {
    throw UsageError("optimizer.lr: 'auto' cannot be resolved when resuming; give a number");
  }
  changed_data_ = check_data(folder, data::paths_of(data()), options_.allow_changed_data);
}

void Run::find_beginning(const fs::path& folder) {
  check_fits(session_.inputs(), read_inputs(folder));
  beginning_ = train::CheckpointStore(folder / "checkpoints").newest_intact(&say_damaged);
  if (beginning_) return;
  throw UsageError(fmt::format("{} has no checkpoint to start from", folder.string()));
}

void Run::restore(const std::optional<RunPlan>& plan, const StopRequest& stop) {
  const std::string path = context_.run_on_rank0([&] { return plan->folder->path().string(); });
  look_at(path);
  if (session_.resolved().is_auto("optimizer", "lr")) return;
  build_trainer(stop);
  if (plan) checkpoint_ = plan->checkpoint;
  resume_trainer();
  context_.run_on_rank0([&] {
    if (plan->is_finished && !plan->changes.empty() && trainer_->has_ended()) {
      throw UsageError(fmt::format(
          "{} is finished, and with {} there is nothing left to train, so its weights would "
          "not be those of its recipe. Nothing was changed; to train longer, give train.epochs "
          "or, where it ended early, train.early_stopping.patience",
          path, describe(plan->changes)));
    }
  });
}

void Run::create() {
  const std::string recipe = recipe_yaml();
  if (options_.name.empty()) {
    const std::string& stem = session_.resolved().name;
    require_run_name(stem);
    place_in(track::RunFolder::create_numbered(options_.runs, stem, recipe, info()));
  } else {
    place_in(track::RunFolder::create(options_.runs, options_.name, recipe, info()));
  }
  write_file_atomically(path_ / kOrigins, session_.resolved().to_yaml(true));
  session_.model().save_definition(path_.string());
}

void Run::commit(RunPlan& plan) {
  plan.folder->claim();
  const fs::path& folder = plan.folder->path();
  if (!plan.changes.empty() || !session_.buckets().empty()) {
    const std::string recipe = recipe_yaml();
    if (recipe != track::RunFolder::read_recipe(folder)) {
      note_foreign_steps(folder, "the first ones were trained with other options");
      write_file_atomically(folder / "recipe.yaml", recipe);
      add_origins(folder, plan.changes);
    }
  }
  if (!changed_data_.empty()) note_foreign_steps(folder, "the data have changed since");
  changed_options_ = describe(plan.changes);
  if (!changed_options_.empty()) {
    print_error("gallop: {} continues with other options: {}\n", folder.string(), changed_options_);
  }
  if (!changed_data_.empty()) {
    print_error("gallop: {} continues with other data: {}\n", folder.string(), changed_data_);
  }
  place_in(std::move(*plan.folder));
  // Without a checkpoint, training starts again with the present files.
  starts_again_ = !plan.checkpoint;
  if (starts_again_) session_.model().save_definition(path_.string());
}

void Run::begin_from(const fs::path& folder) {
  if (!beginning_ || !checkpoints_->list().empty()) return;
  checkpoint_ = checkpoints_->adopt(*beginning_);
  has_adopted_ = true;
  note_foreign_steps(path_, "the first ones are those of " + folder.string());
}

void Run::check_beginning(const fs::path& from, bool is_new, const StopRequest& stop) {
  const bool begins = context_.run_on_rank0([&] { return has_adopted_; });
  // The search for a learning rate starts from the initial weights.
  if (!begins || session_.resolved().is_auto("optimizer", "lr")) return;
  try {
    if (!trainer_) build_trainer(stop);
    resume_trainer();
  } catch (const UsageError& error) {
    discard_beginning(is_new);
    throw UsageError(
        fmt::format("--from: the run cannot start from {}, and nothing was created: {}",
                    printable(from.string()), with_name(error.what(), path_, from)));
  } catch (...) {
    discard_beginning(is_new);
    throw;
  }
}

void Run::discard_beginning(bool is_new) {
  if (!context_.is_first()) return;
  std::error_code ignored;
  fs::remove_all(is_new ? path_ : checkpoint_->folder, ignored);
}

void Run::share_with(const std::vector<PrefixSource>& prefix_sources) {
  if (!checkpoints_->list().empty()) return;
  const auto length = session_.length();
  // The last step is trained here, so that this process can report memory and throughput.
  const int64_t last = std::min(length.step_of(options_.until), length.steps - 1);
  shared_ = share_prefix(session_, info(), prefix_sources, path_, *checkpoints_, last);
}

void Run::prove(const StopRequest& stop) {
  const ProvenTraining proven =
      prove_training(session_.resolved(), options_.runs, context_, {}, stop);
  if (proven.difference.empty()) return;
  throw InternalError(
      fmt::format("train.prove: the first steps differ from the reference: {}. 'gallop prove' "
                  "shows all errors; nothing was created",
                  proven.difference));
}

void Run::look_at(const fs::path& path) {
  if (checkpoints_ && path == path_) return;  // Already restored by the trainer.
  path_ = path;
  checkpoints_.emplace(path_ / "checkpoints",
                       train::CheckpointConfig{.keep_last = recipe().train.keep_checkpoints});
}

void Run::place_in(track::RunFolder folder) {
  folder_.emplace(std::move(folder));
  remove_half_shared(folder_->path());
  look_at(folder_->path());
  start_up_end_.emplace(folder_->log(), stopped_log(), text_of_resuming());
  if (batch_) {
    write_file_atomically(path_ / "find-batch.json",
                          batch_curve_json(folder_->name(), *batch_) + "\n");
    write_file_atomically(path_ / "find-batch.svg",
                          plot::to_svg(batch_curves(folder_->name(), *batch_), 2));
  }
  write_inputs(path_, session_.inputs());
  track::write_data_listing(path_, track::list_data(data::paths_of(data())));
}

train::Outcome Run::train(ConsoleStyle style, SignalGuard& signals) {
  const StopRequest& stop = signals.stop();
  const bool is_first = context_.is_first();
  const std::string how_to_resume = text_of_resuming();
  std::optional<RunLog> log;
  std::optional<StartUpEnd> start_up_end;
  if (is_first) {
    padding_ = padding_text(session_);
    introduce(style);
  }
  if (session_.resolved().is_auto("optimizer", "lr") && !find_lr(style, stop)) return {};
  if (!trainer_) build_trainer(stop);
  if (!is_resumed_) {
    context_.run_on_rank0([&] { checkpoint_ = checkpoints_->newest_intact(&say_damaged); });
    resume_trainer();
  }
  EndOfStartUp first_step(signals);
  std::vector<train::Observer*> observers{&first_step};
  const int64_t from_step =
      context_.run_on_rank0([&] { return checkpoint_ ? checkpoint_->step : int64_t{0}; });
  std::optional<RunProfiler> profiler;
  if (recipe().profile.every != "never") {
    profiler.emplace(session_, *trainer_, context_, path_, from_step);
    observers.push_back(&*profiler);
  }
  std::optional<RunRecorder> recorder;
  if (is_first) {
    std::optional<int64_t> step;
    if (checkpoint_) step = checkpoint_->step;
    LatestAdvice advice;
    if (profiler) advice = [&profiler] { return profiler->advice(); };
    log.emplace(path_ / "metrics.log", step.value_or(0), evaluation_part(data()),
                scheduled_names(session_), context_.local_size());
    start_up_end.emplace(log->file(), log->stopped_record(), how_to_resume);
    recorder.emplace(session_, *log,
                     RunRecorder::Options{.run = path_,
                                          .resumed_at = step,
                                          .style = style,
                                          .notes = notes(),
                                          .choices = choices(),
                                          .resume_command = resume_command(),
                                          .mlflow = options_.mlflow,
                                          .advice = advice});
    const auto recording = recorder->observers();
    observers.insert(observers.end(), recording.begin(), recording.end());
  }
  trainer_->observe(observers);
  if (checkpoint_) say_resumed(*checkpoint_);
  if (!checkpoint_ && starts_again_) {
    print_error("gallop: {} has no checkpoint yet; it starts from the beginning\n",
                printable(path_.string()));
  }
  if (checkpoint_ && is_first && style == ConsoleStyle::kJson) {
    print_earlier(path_, checkpoint_->step);
  }
  train::Outcome outcome = run_to_its_end(*trainer_, log);
  if (recorder) recorder->finish(outcome);
  if (profiler && !profiler->trouble().empty()) {
    print_error("gallop: a profile could not be stored: {}\n", profiler->trouble());
  }
  return outcome;
}

void Run::gather_parameters() {
  if (parallel::Strategy* const strategy = session_.step_config().strategy) {
    strategy->gather_parameters();
  }
}

void Run::build_trainer(const StopRequest& stop) {
  train::TrainerParts parts = trainer_parts(session_, *checkpoints_, stop);
  parts.until = options_.until;
  parts.keep_at = steps_to_keep();
  parts.allow_changed_data = options_.allow_changed_data;
  trainer_.emplace(parts, recipe().train, session_.step_config(), session_.training_loader(),
                   session_.evaluate_config());
}

// Restores rank 0's checkpoint, if there is one.
void Run::resume_trainer() {
  if (!context_.run_on_rank0([&] { return checkpoint_.has_value(); })) return;
  trainer_->resume(checkpoint_);
  is_resumed_ = true;
}

// Resolves `lr: auto`, also in the run folder, which stores the curve. False after a stop request:
// the next start repeats it.
bool Run::find_lr(ConsoleStyle style, const StopRequest& stop) {
  const train::LrRangeTestConfig config;
  const auto test =
      train::test_lr_range({session_.model(), session_.optimizer(), *data().train, stop}, config,
                           session_.step_config(), session_.training_loader());
  if (test.stopped) {
    if (context_.is_first()) {
      print_error("gallop: stopped during the learning rate search; to restart: {}\n",
                  resume_command());
    }
    return false;
  }
  const std::string rule = schedule::lr_rules().front().name;
  const double lr = context_.run_on_rank0([&] { return suggested_lr(rule, config, test); });
  session_.take_lr(lr);
  if (!context_.is_first()) return true;
  const std::string name = folder_->name();
  write_file_atomically(path_ / "find-lr.json", lr_curve_json(name, rule, test) + "\n");
  write_file_atomically(path_ / "find-lr.svg", plot::to_svg({lr_curve(name, config, test)}));
  write_file_atomically(path_ / "recipe.yaml", recipe_yaml());
  write_file_atomically(path_ / kOrigins, session_.resolved().to_yaml(true));
  if (is_for_people(style)) {
    fmt::print("lr         {:.2g}, found in {} steps ({})\n", lr, test.points.size(),
               (path_ / "find-lr.svg").string());
    std::fflush(stdout);
  }
  return true;
}

// Including formats that were measured before the batch size.
std::vector<MadeChoice> Run::choices() const {
  std::vector<MadeChoice> all = batch_ ? batch_->choices : std::vector<MadeChoice>();
  all.insert(all.end(), session_.choices().begin(), session_.choices().end());
  return all;
}

// For the log.
std::vector<std::string> Run::notes() {
  std::vector<std::string> all;
  if (batch_) {
    all.push_back(fmt::format("measured for data.batch_size=auto: {}, {}", recipe().data.batch_size,
                              why_suggested(*batch_)));
  }
  if (!session_.buckets().empty()) all.push_back("buckets " + session_.buckets());
  if (!padding_.empty()) all.push_back("padding: " + padding_);
  for (const std::string& line : data().notes) all.push_back("data: " + line);
  if (!changed_options_.empty()) all.push_back("options changed: " + changed_options_);
  if (!changed_data_.empty()) all.push_back("data changed: " + changed_data_);
  return all;
}

std::string Run::text_of_resuming() const {
  return fmt::format("gallop: to resume: {}\n", resume_command());
}

std::string Run::resume_command() const {
  return shell_line({"gallop", "train", "--resume", path_.string()});
}

void Run::introduce(ConsoleStyle style) {
  if (!is_for_people(style)) return;
  parallel::Strategy* const strategy = session_.step_config().strategy;
  NamedTensors all = session_.model().parameters();
  if (strategy != nullptr && strategy->forward_group() != nullptr) {
    if (const auto parts = strategy->parameters_in_parts(); !parts.empty()) all = wholes_of(parts);
  }
  int64_t parameters = 0;
  for (const auto& parameter : all) parameters += parameter.tensor.numel();
  const std::string part = evaluation_part(data());
  fmt::print("data       {}: {}", recipe().data.module.name(),
             describe_training_data(session_.inputs(), session_.task(),
                                    data().split(data::Part::kTrain)->size()));
  fmt::print("{}\n",
             part.empty()
                 ? std::string(", no split to evaluate on")
                 : fmt::format("; evaluated on the {} split{}", part,
                               recipe().data.rectangular_validation ? ", in rectangles" : ""));
  if (!padding_.empty()) fmt::print("padding    {}\n", padding_);
  if (recipe().data.max_tokens > 0) {
    fmt::print("batches    {} in an epoch, of at most {} tokens and on average {} {}\n",
               format_count(session_.length().batches_per_epoch),
               format_count(recipe().data.max_tokens), format_count(recipe().data.batch_size),
               session_.inputs().text_samples());
  }
  if (const auto& sampling = recipe().data.sampling; !sampling.is_uniform()) {
    fmt::print("sampling   {}\n", sampling.describe());
  }
  fmt::print("model      {}, {} parameters\n", recipe().model.name(), format_count(parameters));
  fmt::print("training   {}\n", session_.describe_training());
  if (!context_.is_alone()) {
    fmt::print("processes  {}, {}{}\n", context_.size(), recipe().strategy.name(),
               describe_shards(session_.optimizer(), session_.step_config().strategy));
  }
  if (!session_.buckets().empty()) fmt::print("buckets    {}\n", session_.buckets());
  fmt::print("run        {}\n", path_.string());
  if (batch_) {
    fmt::print("batch      {}, found in {}: {} ({})\n", format_count(recipe().data.batch_size),
               format_duration(batch_->seconds), why_suggested(*batch_),
               (path_ / "find-batch.svg").string());
  }
  if (const auto& scaling = recipe().lr_scaling; scaling.scales()) {
    const double lr = session_.optimizer().base_lr();
    fmt::print("lr         {:.4g}, {} from {:g} for a batch of {}\n", lr * session_.lr_factor(),
               scaling.rule, lr, format_count(*scaling.batch));
  }
  std::fflush(stdout);
}

// Empty if no other run could start with them.
std::vector<int64_t> Run::steps_to_keep() const {
  const Recipe& recipe = session_.recipe();
  if (!options_.share || !session_.device().is_cpu() || !shares_prefix(recipe, recipe)) return {};
  return PlannedSteps(session_.registries(), recipe, data().train->size())
      .branch_points(*options_.share);
}

void Run::say_resumed(const train::CheckpointInfo& from) const {
  if (shared_) {
    print_error("gallop: the first {} steps are those of {}\n", format_count(shared_->step),
                shared_->run);
  } else {
    print_error("gallop: resumed from step {}\n", from.step);
  }
}

}  // namespace gallop::app
