#include "gallop/tune/sweep.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/trial_args.h"

namespace gallop::tune {
namespace {

Sweep parse(const std::string& yaml) {
  return parse_sweep(TuneRegistries(), yaml, "sweep.yaml", "sweep");
}

std::string mistake(const std::string& yaml) {
  try {
    parse(yaml);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

const Interval& interval(const Sweep& sweep, const std::string& name) {
  return *sweep.settings.space[*sweep.settings.space.find(name)].interval();
}

TEST(Sweep, UsesTheMetricOfItsRecipe) {
  const std::string yaml = "recipe: r\nparameters: {x: [1, 2]}\n";
  EXPECT_TRUE(parse(yaml).settings.objectives.empty());
  const auto parsed = [&](const std::string& text) {
    return parse_sweep(
        TuneRegistries(), text, "sweep.yaml", "sweep",
        {.metric = "dice", .is_maximized = [](const auto& metric) { return metric == "dice"; }});
  };
  const auto objectives = parsed(yaml).settings.objectives;
  ASSERT_EQ(objectives.size(), 1);
  EXPECT_EQ(objectives[0].metric, "dice");
  EXPECT_TRUE(objectives[0].maximize);
  EXPECT_EQ(parsed("metric: loss\n" + yaml).settings.objectives[0].metric, "loss");
  EXPECT_NE(mistake("command: [a]\nparameters: {x: [1, 2]}\n").find("metric: is missing"),
            std::string::npos);
}

TEST(Sweep, IsReadFromAFile) {
  const Sweep sweep = parse(R"(
recipe: fashion-mnist
options: {train.epochs: 3, data.augment: [{random-horizontal-flip: {}}]}
metric: accuracy
parameters:
  optimizer.lr: {min: 1.0e-3, max: 1, scale: log}
  model.depth: {min: 2, max: 8, step: 2}
  model.hidden: [[64], [64, 64]]
  data.batch_size: 128
  optimizer.name:
    cases:
      sgd: {optimizer.momentum: {min: 0.0, max: 0.99}}
      adamw:
constraints: [model.depth * optimizer.lr < 4]
limits: {memory_bytes: 1 GiB}
sampler: {name: tpe, startup: 5}
trials: 30
time: 10 min
workers: 2
seed: 7
start:
- {optimizer.lr: 0.1, model.depth: 4, model.hidden: [64], optimizer.name: adamw}
)");
  const StudySettings& settings = sweep.settings;
  EXPECT_EQ(settings.name, "sweep");
  EXPECT_EQ(settings.seed, 7u);
  EXPECT_EQ(settings.trials, 30);
  EXPECT_EQ(sweep.workers, 2);
  EXPECT_EQ(sweep.seconds, 600);
  EXPECT_EQ(settings.sampler, R"({"name":"tpe","startup":5})");
  EXPECT_EQ(settings.pruner, R"({"name":"none"})");
  ASSERT_EQ(settings.objectives.size(), 1u);
  EXPECT_TRUE(settings.objectives[0].maximize);
  EXPECT_EQ(settings.limits.at(0).most, 1 << 30);
  const RunSpec run = parse_run_spec(settings.run);
  EXPECT_EQ(run.recipe, "fashion-mnist");
  EXPECT_EQ(run.options[0], (std::pair<std::string, std::string>("train.epochs", "3")));
  EXPECT_EQ(run.options[1].second, R"([{"random-horizontal-flip":{}}])");
  EXPECT_EQ(settings.space.size(), 6u);
  EXPECT_EQ(interval(sweep, "optimizer.lr").scale, Scale::kLog);
  EXPECT_EQ(interval(sweep, "optimizer.lr").step, 0);
  EXPECT_EQ(interval(sweep, "model.depth").step, 2);
  EXPECT_TRUE(interval(sweep, "model.depth").integer);
  EXPECT_EQ(settings.space[5].name, "optimizer.momentum");
  EXPECT_EQ(settings.space[5].condition->parent, 4u);
  ASSERT_EQ(sweep.start.size(), 1u);
  EXPECT_TRUE(settings.space.contains(sweep.start[0]));
}

TEST(Sweep, ReadsShare) {
  const auto share = [](const std::string& line) {
    const Sweep sweep = parse("recipe: r\nmetric: loss\nparameters: {a: [1, 2]}\n" + line);
    return parse_run_spec(sweep.settings.run).share;
  };
  EXPECT_EQ(share(""), std::nullopt);
  EXPECT_EQ(share("share: true"), kUsualShare);
  EXPECT_EQ(share("share: false"), 0);
  EXPECT_EQ(share("share: 12"), 12);
  const std::string expected = "expected true, false or the number of checkpoints to keep";
  for (const char* const wrong : {"-1", "0.5", "often", "[4]"}) {
    const std::string error =
        mistake(std::string("recipe: r\nmetric: loss\nparameters: {a: [1, 2]}\nshare: ") + wrong);
    EXPECT_NE(error.find(expected), std::string::npos) << wrong << ": " << error;
  }
  EXPECT_NE(mistake("command: [a]\nmetric: loss\nparameters: {a: [1, 2]}\nshare: true")
                .find("requires a recipe"),
            std::string::npos);
}

TEST(Sweep, ReadsWandbSweeps) {
  const Sweep sweep = parse(R"(
program: train.py
name: night
project: demo
method: bayes
metric: {name: val_loss, goal: minimize}
run_cap: 50
parameters:
  epochs: {value: 5}
  batch: {values: [32, 64], probabilities: [0.25, 0.75]}
  lr: {min: 0.0001, max: 0.1}
  layers: {min: 1, max: 4}
  decay: {distribution: log_uniform, min: -9.2, max: -4.6}
  rate: {distribution: inv_log_uniform, min: 2.3, max: 9.2}
  drop: {distribution: q_uniform, min: 0, max: 0.5, q: 0.1}
  scale: {distribution: normal, mu: 2, sigma: 0.5}
  optimizer: {parameters: {beta: {distribution: uniform, min: 0.8, max: 0.99}}}
early_terminate: {type: hyperband, min_iter: 3, eta: 2}
command: ["${env}", "${interpreter}", "${program}", "${args}"]
)");
  EXPECT_EQ(sweep.settings.name, "night");
  EXPECT_EQ(sweep.settings.trials, 50);
  EXPECT_EQ(sweep.settings.sampler, R"({"name":"gp"})");
  EXPECT_EQ(sweep.settings.pruner,
            R"({"name":"successive-halving","min_resource":3,"reduction_factor":2})");
  EXPECT_EQ(parse_run_spec(sweep.settings.run).command,
            (std::vector<std::string>{"/usr/bin/env", "python3", "train.py", "${args}"}));
  EXPECT_TRUE(parse_run_spec(sweep.settings.run).python_words);
  EXPECT_EQ(interval(sweep, "lr").step, 0);
  EXPECT_EQ(interval(sweep, "layers").step, 1);
  EXPECT_NEAR(interval(sweep, "decay").low, std::exp(-9.2), 1e-12);
  EXPECT_NEAR(interval(sweep, "rate").low, std::exp(-9.2), 1e-12);
  EXPECT_NEAR(interval(sweep, "rate").high, std::exp(-2.3), 1e-12);
  EXPECT_EQ(count(interval(sweep, "drop")), 6);
  EXPECT_EQ(interval(sweep, "scale").scale, Scale::kNormal);
  EXPECT_EQ(interval(sweep, "scale").high, 5);
  EXPECT_TRUE(sweep.settings.space.find("optimizer.beta"));
  EXPECT_EQ(sweep.settings.space[1].choices()->weights, (std::vector<double>{0.25, 0.75}));
}

TEST(Sweep, OfAGridHasAllOfItsPoints) {
  const std::string grid =
      "program: train.py\nmethod: grid\nmetric: {name: loss, goal: minimize}\n"
      "parameters: {a: {min: 1, max: 10}, b: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}\n";
  EXPECT_EQ(parse(grid).settings.trials, 120);
  EXPECT_EQ(parse(grid + "run_cap: 7\n").settings.trials, 7);
  EXPECT_EQ(parse("command: [a]\nmetric: loss\nsampler: {name: grid, points: 3}\n"
                  "parameters: {a: {min: 0.5, max: 1}, b: {min: 0.5, max: 1}}\n"
                  "start: [{a: 0.6, b: 0.7}]\n")
                .settings.trials,
            10);
}

TEST(Sweep, RejectsKeysWithoutAnEffect) {
  for (const auto& [parameter, key] :
       {std::pair{"{min: 0, max: 1, q: 0.1}", "q"},
        {"{distribution: q_uniform, min: 0, max: 1, step: 0.1}", "step"},
        {"{distribution: uniform, min: 0, max: 1, mu: 0.5}", "mu"}}) {
    EXPECT_NE(
        mistake(std::string("command: [a]\nmetric: loss\nparameters: {x: ") + parameter + "}\n")
            .find(std::string("parameters.x.") + key + ": unknown key"),
        std::string::npos)
        << parameter;
  }
  EXPECT_NE(mistake("command: [a]\nmetric: loss\nparameters: {x: {value: 1, values: [1, 2]}}\n")
                .find("give one of them"),
            std::string::npos);
}

TEST(Sweep, OfWandbIsReadAsYaml11) {
  const Sweep sweep = parse(R"(
program: train.py
method: grid
metric: {name: val_loss, goal: minimize}
parameters:
  fast: {values: [True, no]}
  none: {values: [Null, 'None', 1]}
  nothing: {value: ~}
  text: {value: 'yes'}
  act: {values: [none, None, relu]}
  integers: {value: [0x10, 010, 0b101, 1_000, +5, -0, 12:30, 190:20:30, 9223372036854775807]}
  fractions: {value: [1.0, 1., .5, 1.5e+3, 1.0e-5, -2_0.5, 1:30.5, 1.0e+16]}
  strings: {value: [1e-5, 1e5, 1.0e5, -.5, 08, 0o17, 2024-01-02, 9223372036854775808, '1.0', 0x]}
  odd: {value: [.inf, -.INF, .nan]}
  map: {value: {a: 1.0, b: off}}
  bounds: {min: 0x10, max: 1:00}
  scale: {min: 1e-3, max: 1.0}
  steps: {distribution: q_uniform, min: 1, max: 3, q: 1.0}
  whole: {distribution: q_uniform, min: 1, max: 3, q: 1}
  usual: {distribution: q_uniform, min: 1, max: 3}
start: [{fast: yes, none: null, act: none, bounds: 020, scale: 0.5, steps: 1.0, whole: 2, usual: 3}]
command: [yes, true, 'yes', 010, 1.50, 1e-5, ~, none, [1, a], "${args}"]
run_cap: 010
early_terminate: {type: hyperband, min_iter: 0x3, strict: yes}
)");
  const auto choices = [&](const char* name) {
    return sweep.settings.space[*sweep.settings.space.find(name)].choices()->values;
  };
  using Values = std::vector<std::string>;
  EXPECT_EQ(choices("fast"), (Values{"true", "false"}));
  EXPECT_EQ(choices("none"), (Values{"null", "\"None\"", "1"}));
  EXPECT_EQ(choices("nothing"), (Values{"null"}));
  EXPECT_EQ(choices("text"), (Values{"\"yes\""}));
  EXPECT_EQ(choices("act"), (Values{"\"none\"", "\"None\"", "\"relu\""}));
  EXPECT_EQ(choices("integers"), (Values{"[16,8,5,1000,5,0,750,685230,9223372036854775807]"}));
  EXPECT_EQ(choices("fractions"), (Values{"[1.0,1.0,0.5,1500.0,1e-05,-20.5,90.5,1e+16]"}));
  EXPECT_EQ(choices("strings"), (Values{R"(["1e-5","1e5","1.0e5","-.5","08","0o17","2024-01-02",)"
                                        R"("9223372036854775808","1.0","0x"])"}));
  EXPECT_EQ(choices("odd"), (Values{R"(["inf","-inf","nan"])"}));
  EXPECT_EQ(choices("map"), (Values{R"({"a":1.0,"b":false})"}));
  EXPECT_EQ(interval(sweep, "bounds").low, 16);
  EXPECT_EQ(interval(sweep, "bounds").high, 60);
  EXPECT_TRUE(interval(sweep, "bounds").integer);
  EXPECT_EQ(interval(sweep, "scale").low, 1e-3);
  EXPECT_FALSE(interval(sweep, "steps").integer);
  EXPECT_TRUE(interval(sweep, "whole").integer);
  EXPECT_TRUE(interval(sweep, "usual").integer);
  EXPECT_EQ(sweep.start.size(), 1u);
  EXPECT_EQ(
      parse_run_spec(sweep.settings.run).command,
      (Values{"True", "True", "yes", "8", "1.5", "1e-5", "None", "none", "[1, 'a']", "${args}"}));
  EXPECT_EQ(sweep.settings.trials, 8);
  EXPECT_EQ(sweep.settings.pruner,
            R"({"name":"successive-halving","min_resource":3,"reduction_factor":3})");
}

// Valid for options such as `train.spikes.action`; only `null` and `~` are null in YAML.
TEST(Sweep, HasTheTextNone) {
  const Sweep sweep = parse(R"(
recipe: a
metric: loss
parameters:
  train.spikes.action: [none, skip, null]
  data.normalize: none
  optimizer.lr_scaling: {values: [none, linear]}
  schedule.name: {cases: {none: , cosine: {schedule.final: [0, 0.1]}}}
start: [{train.spikes.action: none, optimizer.lr_scaling: none, schedule.name: none}]
)");
  const Space& space = sweep.settings.space;
  using Values = std::vector<std::string>;
  EXPECT_EQ(space[0].choices()->values, (Values{"\"none\"", "\"skip\"", "null"}));
  EXPECT_EQ(space[1].choices()->values, (Values{"\"none\""}));
  EXPECT_EQ(space[2].choices()->values, (Values{"\"none\"", "\"linear\""}));
  EXPECT_EQ(space[3].choices()->values, (Values{"\"none\"", "\"cosine\""}));
  EXPECT_EQ(recipe_options(parse_run_spec(sweep.settings.run), space, sweep.start.at(0)),
            (Values{"train.spikes.action=none", "data.normalize=none", "optimizer.lr_scaling=none",
                    "schedule.name=none"}));
}

TEST(Sweep, OfWandbFlattensNestedParameters) {
  const Sweep sweep = parse(
      "program: a\nmethod: random\nmetric: loss\nparameters:\n"
      "  optimizer: {parameters: {lr: [1, 2], more: {parameters: {beta: [1, 2]}}}}\n"
      "  model.width: [1, 2]\n");
  EXPECT_EQ(parse_run_spec(sweep.settings.run).nested,
            (std::vector<std::string>{"optimizer", "optimizer.more"}));
}

TEST(Sweep, RejectsUnknownMacros) {
  const std::string said = mistake(
      "program: a\nmethod: grid\nmetric: loss\nparameters: {a: [1, 2]}\n"
      "command: [\"${env}\", \"${progam}\", \"${args_dict}\"]\n");
  EXPECT_NE(said.find("sweep.yaml:5:21: command: unknown macro '${progam}'; known are ${env},"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("unknown macro '${args_dict}'"), std::string::npos) << said;
}

TEST(Sweep, HasExactDecimalMultiplesOfQ) {
  const Sweep sweep = parse(
      "program: a\nmethod: random\nmetric: loss\nparameters:\n"
      "  a: {distribution: q_uniform, min: 0.3, max: 0.7, q: 0.1}\n"
      "  b: {distribution: q_normal, mu: 0, sigma: 0.05, q: 0.1}\n");
  EXPECT_EQ(interval(sweep, "a").low, 0.3);
  EXPECT_EQ(interval(sweep, "a").high, 0.7);
  EXPECT_EQ(interval(sweep, "b").low, -0.3);
  EXPECT_EQ(interval(sweep, "b").high, 0.3);
}

TEST(Sweep, ReadsEarlyTerminateOfWandb) {
  const auto pruner = [](const std::string& text) {
    return parse(
               "program: a\nmethod: grid\nmetric: loss\nparameters: {a: [1, 2]}\n"
               "early_terminate: " +
               text + "\n")
        .settings.pruner;
  };
  EXPECT_EQ(pruner("{type: hyperband, min_iter: 3}"),
            R"({"name":"successive-halving","min_resource":3,"reduction_factor":3})");
  EXPECT_EQ(pruner("{type: hyperband, max_iter: 100, s: 3, strict: True}"),
            R"({"name":"successive-halving","max_resource":100,"rungs":3,"reduction_factor":3})");
  const auto wrong = [&](const std::string& text) {
    return mistake(
        "program: a\nmethod: grid\nmetric: loss\nparameters: {a: [1, 2]}\n"
        "early_terminate: " +
        text + "\n");
  };
  EXPECT_NE(wrong("{type: envelope}").find("early_terminate.type: expected hyperband"),
            std::string::npos);
  EXPECT_NE(wrong("{type: hyperband, max_iter: 27}").find("expected min_iter, or max_iter and s"),
            std::string::npos);
  EXPECT_NE(wrong("{type: hyperband, max_iter: 2, s: 1}").find("max_iter is below eta"),
            std::string::npos);
  EXPECT_NE(wrong("{type: hyperband, eta: 1}").find("early_terminate.eta"), std::string::npos);
}

TEST(Sweep, OfWandbMayHaveADisplayName) {
  const std::string rest = "program: a\nmetric: loss\nparameters: {a: [1, 2]}\n";
  EXPECT_EQ(parse("method: grid\nname: My first sweep!\n" + rest).settings.name, "sweep");
  EXPECT_EQ(parse("name: My first sweep!\n" + rest).settings.name, "My first sweep!");
}

TEST(Sweep, RejectsOptionsSetByAParameter) {
  const std::string start =
      "recipe: a\nmetric: loss\nparameters:\n  model: [mlp, cnn]\n  train.epochs: [1, 2]\n"
      "  kind: {cases: {a: {train.steps: [1, 2]}, b: }}\n";
  const auto wrong = [&](const std::string& options) {
    return mistake(start + "options: " + options);
  };
  EXPECT_EQ(wrong("{data.batch_size: 2, train.epochs: 3}"),
            "sweep.yaml:7:31: options.train.epochs: is already set by the parameter "
            "'train.epochs'; remove it");
  EXPECT_EQ(wrong("{train: {epochs: 3}}"),
            "sweep.yaml:7:19: options.train.epochs: is already set by the parameter "
            "'train.epochs'; remove it");
  EXPECT_NE(wrong("{model.hidden: [8]}").find("is already set by the parameter 'model'"),
            std::string::npos);
  // It counts where the parameter has no value.
  EXPECT_EQ(wrong("{train.steps: 3, models: 1}"), "");
}

TEST(Sweep, MaximizesAccuracies) {
  const auto is_maximized = [](const std::string& metric) {
    return parse("recipe: a\nmetric: " + metric + "\nparameters: {a: [1, 2]}\n")
        .settings.objectives.at(0)
        .maximize;
  };
  for (const char* const metric : {"accuracy", "best_accuracy", "top5", "{name: best_top5}"}) {
    EXPECT_TRUE(is_maximized(metric)) << metric;
  }
  for (const char* const metric : {"loss", "best_loss", "seconds to accuracy 0.9"}) {
    EXPECT_FALSE(is_maximized(metric)) << metric;
  }
}

TEST(Sweep, RejectsValuesOfTheWrongType) {
  const std::string start = "recipe: a\nmetric: loss\nparameters: {a: {min: 0, max: 9}}\n";
  const auto names = [&](const std::string& line, const std::string& part) {
    const std::string error = mistake(start + line);
    EXPECT_NE(error.find(part), std::string::npos) << line << ": " << error;
  };
  names("start: {a: 1}", "sweep.yaml:4:8: start: expected a list");
  names("constraints: a < 3", "sweep.yaml:4:14: constraints: expected a list");
  names("constraints: [{a: 3}]", "expected a formula");
  names("limits: [loss]", "limits: expected a map");
  names("constraints: [b < 3, a +, aa]\n",
        "sweep.yaml:4:15: constraints: there is no parameter 'b'\n"
        "sweep.yaml:4:22: constraints: 'a +': at letter 4: a value is missing\n"
        "sweep.yaml:4:27: constraints: there is no parameter 'aa'");
  names("options: [b]", "options: expected a map");
  names("name: [b]", "name: expected a string");
  names("workers: 4294967296", "workers: expected an integer from 1 to 1024");
  names("failures: 4294967297", "failures: expected an integer from 1 to 2147483647");
  names("run_cap: 3\ntrials: 4", "run_cap: duplicates 'trials'; remove one");
  names("constraints: [a < 3]\nstart: [{a: 2}, {a: 5}]",
        "sweep.yaml:5:17: start: this point violates a constraint");
  const std::string error =
      mistake("recipe: a\nmetric: loss\nparameters: {a: {values: [1, 2], weights: 3}}\n");
  EXPECT_NE(error.find("weights: expected a list of numbers"), std::string::npos) << error;
  EXPECT_NE(mistake("recipe: a\nmetric: loss\nparameters: {a: {distribution: categorical}}\n")
                .find("parameters.a: 'values' is missing"),
            std::string::npos);
}

TEST(Sweep, HasBetaDistributionsAndTargets) {
  const Sweep sweep = parse(R"(
program: train.py
method: random
metric: {name: val_acc, goal: maximize, target: 0.9}
parameters:
  drop: {distribution: beta, a: 2, b: 5}
  share: {distribution: q_beta, a: 2, b: 2, q: 0.25}
)");
  EXPECT_EQ(sweep.settings.objectives[0].target, 0.9);
  EXPECT_EQ(parse_settings(to_json(sweep.settings)).objectives[0].target, 0.9);
  const Interval drop = interval(sweep, "drop");
  EXPECT_EQ(drop.scale, Scale::kBeta);
  EXPECT_EQ(drop.low, 0);
  EXPECT_EQ(drop.high, 1);
  EXPECT_EQ(drop.b, 5);
  // SciPy's beta.ppf(0.25, 2, 5).
  EXPECT_NEAR(value_at(drop, 0.25), 0.16116291679032652, 1e-12);
  EXPECT_NEAR(coordinate(drop, 0.16116291679032652), 0.25, 1e-12);
  EXPECT_EQ(count(interval(sweep, "share")), 5);
  EXPECT_EQ(Space::from_json(sweep.settings.space.to_json()).to_json(),
            sweep.settings.space.to_json());
}

TEST(Sweep, SupportsPrunerNone) {
  for (const char* pruner : {"none", "{name: none}", "\"none\""}) {
    const Sweep sweep =
        parse(std::string("recipe: a\nmetric: loss\nparameters: {a: 1}\npruner: ") + pruner + "\n");
    EXPECT_EQ(sweep.settings.pruner, R"({"name":"none"})");
    EXPECT_FALSE(has_pruner(sweep.settings));
  }
}

TEST(Sweep, RequiresUtf8) {
  EXPECT_EQ(mistake("metric: \"caf\xe9\"\nparameters: {x: {min: 0, max: 1.0}}\n"),
            "sweep.yaml: not UTF-8");
  EXPECT_EQ(mistake("metric: \"caf\xc3\xa9\"\nparameters: {x: {min: 0, max: 1.0}}\n"), "");
}

TEST(Sweep, ReportsAllMistakesWithPosition) {
  EXPECT_EQ(mistake("recipe: a\ntrails: 3\nmetric: loss\nparameters: {lr: {min: 0, mx: 1}}\n"),
            "sweep.yaml:2:1: trails: unknown key, did you mean 'trials'?\n"
            "sweep.yaml:4:27: parameters.lr.mx: unknown key, did you mean 'max'?; known are min, "
            "max, scale, step and distribution\n"
            "sweep.yaml:4:18: parameters.lr: 'max' is missing");
  EXPECT_EQ(
      mistake("recipe: a\nsampler: random\npruner: {name: median, startup: -1}\nmetric: loss\n"
              "parameters: {a: 1}\n")
          .substr(0, 32),
      "sweep.yaml:3:24: pruner.startup:");
  EXPECT_NE(mistake("recipe: a\nsampler: tp\nmetric: loss\nparameters: {a: 1}\n")
                .find("sweep.yaml:2:10: sampler.name: unknown sampler 'tp'; did you mean 'tpe'?"),
            std::string::npos);
  EXPECT_EQ(mistake("recipe: a\nmetric: loss\n"),
            "sweep.yaml:1:1: parameters: is missing: at least one parameter is required");
  EXPECT_EQ(mistake("recipe: a\nmetric: loss\nparameters: {lr: {min: 0.0, max: 1, scale: log}}\n"),
            "sweep.yaml:3:13: lr: from 0 to 1: a logarithmic scale requires values above 0");
  EXPECT_EQ(mistake("recipe: a\nmetric: loss\nparameters: {lr: {min: 3.5, max: 1}}\n"),
            "sweep.yaml:3:13: lr: from 3.5 to 1: the lower bound is above the upper");
  EXPECT_NE(mistake("recipe: a\nmetric: loss\nparameters: {a: {distribution: gamma}}\n")
                .find("unknown distribution 'gamma'"),
            std::string::npos);
  EXPECT_NE(mistake("recipe: a\nmetric: loss\nparameters: {a: {scale: beta, a: 0, b: 1}}\n")
                .find("0 of a beta distribution: must be above 0 and at most 1e6"),
            std::string::npos);
  EXPECT_NE(mistake("recipe: a\nmetric: loss\nparameters: {a: {scale: beta, max: 2.0}}\n")
                .find("a beta distribution must be from 0 to 1"),
            std::string::npos);
  EXPECT_NE(mistake("recipe: a\nmetric: {name: loss, target: low}\nparameters: {a: [1, 2]}\n")
                .find("sweep.yaml:2:30: metric.target: expected a number"),
            std::string::npos);
  EXPECT_NE(mistake("recipe: a\nmetric: {name: loss, aim: 1}\nparameters: {a: [1, 2]}\n")
                .find("metric.aim: unknown key; known are name, goal, target"),
            std::string::npos);
  EXPECT_NE(mistake("options: {a: 1}\nmetric: loss\nparameters: {a: 1}\n")
                .find("options require a recipe"),
            std::string::npos);
  EXPECT_NE(mistake("recipe: a\ncommand: [b]\nmetric: loss\nparameters: {a: 1}\n")
                .find("mutually exclusive"),
            std::string::npos);
  EXPECT_NE(mistake("recipe: a\nmetric: {name: loss, goal: small}\nparameters: {a: 1}\n")
                .find("sweep.yaml:2:28: metric.goal: expected minimize or maximize"),
            std::string::npos);
  EXPECT_NE(mistake("recipe: a\nmetric: loss\nparameters: {a: [1, 2]}\nstart: [{a: 3}]\n")
                .find("sweep.yaml:4:10: a: 3 is not one of its values"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::tune
