#include "gallop/app/run_recorder.h"

#include <fmt/format.h>

#include "gallop/app/identity.h"
#include "gallop/app/print.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/run_samples.h"
#include "gallop/app/run_schedule.h"
#include "gallop/base/shell.h"
#include "gallop/data/data_paths.h"
#include "gallop/track/cross_validation.h"
#include "gallop/track/run_samples.h"

namespace gallop::app {

namespace {

// A process that was asked to stop is soon killed.
constexpr double kIdentitySecondsAfterSignal = 2;

ConsoleLabels labels_of(const Session& session, const fs::path& run) {
  ConsoleLabels labels;
  labels.part = evaluation_part(session.data());
  labels.run_folder = run.string();
  const data::Signature& signature = session.inputs();
  labels.item = samples_of(signature);
  if (signature.is_text() && !signature.separate_texts) {
    labels.item = "tokens";
    labels.items_per_sample = signature.context;
  }
  if (const auto* const evaluated = session.data().evaluation()) {
    labels.evaluated_samples = evaluated->size();
  }
  labels.classifies = session.task().has_class_labels();
  return labels;
}

track::IdentityQuestion question_of(Session& session, const RunRecorder::Options& options) {
  auto question = identity_question(data::paths_of(session.data()), options.run.parent_path(),
                                    options.resumed_at.value_or(0), session.recipe().plugins);
  question.models = session.model().files();
  if (!options.resumed_at || question.models.empty()) return question;
  try {
    const auto identities = track::read_identities(options.run);
    if (!identities.empty()) question.known_models = identities.back().models;
  } catch (const DataError&) {
    // A damaged record is replaced.
  }
  return question;
}

}  // namespace

RunRecorder::RunRecorder(Session& session, RunLog& log, const Options& options)
    : run_(options.run),
      style_(options.style),
      mlflow_(options.mlflow),
      identity_(options.run, question_of(session, options)),
      console_(make_console(options.style, labels_of(session, options.run), options.advice)) {
  for (const MadeChoice& choice : options.choices) {
    log.noted(fmt::format("measured for {}: {}", choice.options, choice.evidence));
  }
  for (const std::string& note : options.notes) log.noted(note);
  if (options.mlflow) pusher_.emplace(options.run, *options.mlflow);
  observers_ = {&log, console_.get()};
  if (session.recipe().track.histograms) {
    histograms_.emplace(options.run, options.resumed_at.value_or(0), session.model());
    observers_.push_back(&*histograms_);
  }
  track::write_run_schedule(options.run, run_schedule(session));
  // A resumed run shows its first samples, not those that it continues with.
  if (!options.resumed_at || !fs::exists(track::run_samples_of(options.run))) {
    keep_first_samples(options.run, session, session.recipe().track.log_samples);
  }
  remind_of(options.choices, options.resume_command);
}

void RunRecorder::remind_of(const std::vector<MadeChoice>& choices,
                            const std::string& resume_command) {
  const std::vector<train::Observer*> reminded = observers_;
  for (const MadeChoice& choice : choices) {
    if (!choice.is_uncertain) continue;
    reminders_.push_back(std::make_unique<ChoiceReminder>(choice, resume_command, reminded));
    observers_.push_back(reminders_.back().get());
  }
}

void RunRecorder::finish(const train::Outcome& outcome) {
  const auto folds = outcome.finished && style_ != ConsoleStyle::kJson
                         ? track::cross_validation_of(run_)
                         : std::nullopt;
  if (folds && folds->is_complete()) {
    print_to(stdout, "All {} folds are trained; mean and standard deviation: {}\n", folds->folds,
             track::describe(folds->metrics));
  }
  const std::string unknown = outcome.finished || outcome.paused
                                  ? identity_.finish()
                                  : identity_.finish_within(kIdentitySecondsAfterSignal);
  if (!unknown.empty()) {
    print_error("gallop: 'gallop runs verify' will not know the data of this run: {}\n", unknown);
  }
  const std::string not_sent = pusher_ ? pusher_->finish() : std::string();
  if (!not_sent.empty()) {
    print_error(
        "gallop: {}; to send the rest: {}\n", not_sent,
        shell_line({"gallop", "runs", "push", run_.string(), "--mlflow", mlflow_->address}));
  }
}

}  // namespace gallop::app
