#include "gallop/ui/api/api.h"

#include <cmath>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/track/evaluation_report.h"
#include "gallop/track/foreign_run.h"
#include "gallop/track/labels.h"
#include "gallop/track/run_profiles.h"
#include "gallop/track/run_samples.h"
#include "gallop/track/run_schedule.h"
#include "gallop/ui/site.h"
#include "unit/ui/api_of_test.h"

namespace gallop::ui::api {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_F(Api, DescribesItself) {
  folder.add("a", "{optimizer: {lr: 0.1}}", {0.5});
  const Json session = get("session");
  EXPECT_EQ(session.at("token"), "the token");
  EXPECT_EQ(session.at("version"), "1.2.3");
  EXPECT_EQ(session.at("runs"), 1);
  const Json columns = get("columns");
  EXPECT_EQ(columns.at("metrics"), (Json{"accuracy", "train.loss"}));
  EXPECT_EQ(columns.at("params"), Json::array({"optimizer.lr"}));
  EXPECT_EQ(columns.at("tags"), Json::array());
}

TEST_F(Api, RejectsUnknownEndpoints) {
  EXPECT_EQ(error("nothing", 404), "'/api/nothing' does not exist");
  EXPECT_EQ(error("tag", 405), "'/api/tag' requires POST");
  EXPECT_EQ(post("runs", "{}", 405).at("error"), "'/api/runs' requires GET");
  EXPECT_EQ(error("run?name=../../etc/passwd", 404), "there is no run '../../etc/passwd'");
  EXPECT_EQ(error("run", 400), "'name' is required");
}

TEST_F(Api, ServesOnlyAReportAndItsImages) {
  folder.add("a", "{}", {0.5});
  EXPECT_EQ(error("run/report?name=a", 404), "'a' has no report");
  const fs::path run = folder.path() / "a";
  make_folders(track::evaluation_report_of(run));
  write_file_atomically(track::evaluation_report_of(run) / "00.png", "a picture");
  track::EvaluationReport report{
      .step = 3, .part = "test", .classes = {"cat", "<b>"}, .counts = {{2, 0}, {1, 4}}};
  report.mistakes.push_back({.image = "00.png",
                             .width = 4,
                             .height = 4,
                             .channels = 1,
                             .truth = 1,
                             .guess = 0,
                             .probability = 0.75});
  write_file_atomically(track::evaluation_report_of(run) / "roc-curve.svg", "<svg/>");
  report.figures = {{"roc-curve", "ROC curve"}};
  track::write_evaluation_report(track::evaluation_report_of(run), report);
  const Json reply = get("run/report?name=a");
  EXPECT_EQ(reply.at("counts"), (Json{{2, 0}, {1, 4}}));
  EXPECT_EQ(reply.at("classes"), (Json{"cat", "<b>"}));
  EXPECT_EQ(reply.at("mistakes")[0].at("probability"), 0.75);
  EXPECT_EQ(reply.at("figures"), (Json::array({{{"name", "roc-curve"}, {"title", "ROC curve"}}})));
  EXPECT_EQ(text("run/figure?name=a&figure=roc-curve"), "<svg/>");
  EXPECT_EQ(error("run/figure?name=a&figure=../report", 404),
            "image '../report.svg' does not exist");
  EXPECT_EQ(text("run/image?name=a&image=00.png"), "a picture");
  for (const char* image : {"01.png", "report.json", "../recipe.yaml", "00.png/../report.json"}) {
    EXPECT_EQ(error(std::string("run/image?name=a&image=") + image, 404),
              "image '" + std::string(image) + "' does not exist");
  }
  fs::remove(track::evaluation_report_of(run) / "00.png");
  fs::create_symlink(run / "recipe.yaml", track::evaluation_report_of(run) / "00.png");
  EXPECT_EQ(error("run/image?name=a&image=00.png", 404), "image '00.png' does not exist");
  write_file_atomically(track::evaluation_report_of(run) / "report.json", "{\"step\":");
  EXPECT_NE(error("run/report?name=a", 422).find("report.json"), std::string::npos);
}

TEST_F(Api, ReturnsTheScheduleOfARun) {
  const fs::path run = folder.add("a", "{}", {0.5});
  EXPECT_EQ(error("run/schedule?name=a", 404), "'a' has no schedule");
  EXPECT_EQ(error("run/schedule?name=..%2Fa", 404), "there is no run '../a'");
  EXPECT_EQ(error("run/schedule", 400), "'name' is required");
  track::RunSchedule schedule{.steps = 30, .steps_per_epoch = 10, .at = {1, 30}};
  schedule.lines.push_back({.metric = "train.lr", .schedule = "cosine", .values = {0.1, kNan}});
  schedule.lines.push_back({.metric = "train.momentum",
                            .schedule = "reduce-on-plateau",
                            .follows_evaluations = true,
                            .values = {0.9, 0.8}});
  track::write_run_schedule(run, schedule);
  const Json reply = get("run/schedule?name=a");
  EXPECT_EQ(reply.at("steps"), 30);
  EXPECT_EQ(reply.at("steps_per_epoch"), 10);
  EXPECT_EQ(reply.at("at"), (Json{1, 30}));
  EXPECT_EQ(reply.at("lines")[0], (Json{{"metric", "train.lr"},
                                        {"schedule", "cosine"},
                                        {"follows_evaluations", false},
                                        {"values", {0.1, "NaN"}}}));
  EXPECT_EQ(reply.at("lines")[1].at("follows_evaluations"), true);
  write_file_atomically(run / "schedule.json", "{\"steps\":");
  EXPECT_NE(error("run/schedule?name=a", 422).find("schedule.json"), std::string::npos);
}

TEST_F(Api, ServesOnlyTheSamplesOfARunAndTheirImages) {
  const fs::path run = folder.add("a", "{}", {0.5});
  EXPECT_EQ(error("run/samples?name=a", 404), "'a' has no samples");
  EXPECT_EQ(error("run/samples?name=..", 404), "there is no run '..'");
  const fs::path samples = track::run_samples_of(run);
  make_folders(samples);
  write_file_atomically(samples / "00.png", "a picture");
  write_file_atomically(samples / "01.png", "as it was");
  write_file_atomically(samples / "03.png", "of no run");
  track::write_run_samples(run,
                           {.augmented_by = {"random-horizontal-flip"},
                            .samples = {{.label = "<b>", .image = "00.png", .before = "01.png"},
                                        {.label = "cat", .image = "02.png"}}});
  const Json reply = get("run/samples?name=a");
  EXPECT_EQ(reply.at("augmented_by"), Json::array({"random-horizontal-flip"}));
  EXPECT_EQ(reply.at("samples")[0],
            (Json{{"label", "<b>"}, {"image", "00.png"}, {"before", "01.png"}, {"text", ""}}));
  EXPECT_EQ(text("run/samples/image?name=a&image=00.png"), "a picture");
  EXPECT_EQ(text("run/samples/image?name=a&image=01.png"), "as it was");
  for (const char* image : {"03.png", "samples.json", "../recipe.yaml", "00.png/../samples.json"}) {
    EXPECT_EQ(error(std::string("run/samples/image?name=a&image=") + image, 404),
              "image '" + std::string(image) + "' does not exist");
  }
  EXPECT_EQ(error("run/samples/image?name=a&image=", 400), "'image' is required");
  EXPECT_NE(error("run/samples/image?name=a&image=02.png", 422).find("02.png"), std::string::npos);
  write_file_atomically(samples / "samples.json", "{\"samples\":");
  EXPECT_NE(error("run/samples?name=a", 422).find("samples.json"), std::string::npos);
  EXPECT_NE(error("run/samples/image?name=a&image=00.png", 422).find("samples.json"),
            std::string::npos);
}

TEST_F(Api, ServesProfilesAndTheirTraces) {
  const fs::path run = folder.add("a", "{}", {0.5});
  EXPECT_EQ(error("run/profiles?name=a", 404), "'a' has no profiles");
  EXPECT_EQ(error("run/profile?name=a&step=20", 404), "'a' has no such profile of step 20");
  track::write_run_profile(run, 20, "{\"advice\": []}", {"a trace", "of rank 1"});
  track::write_run_profile(run, 100, "{\"advice\":", {"a trace"});
  EXPECT_EQ(get("run/profiles?name=a").at("steps"), (Json{20, 100}));
  EXPECT_EQ(get("run/profile?name=a&step=20"), (Json{{"advice", Json::array()}}));
  EXPECT_EQ(error("run/profile?name=a&step=100", 422), "the profile of step 100 is damaged");
  EXPECT_EQ(text("run/profile/trace?name=a&step=20"), "a trace");
  EXPECT_EQ(text("run/profile/trace?name=a&step=20&rank=1"), "of rank 1");
  EXPECT_EQ(error("run/profile/trace?name=a&step=20&rank=2", 404),
            "'a' has no such profile of step 20");
  for (const char* step : {"", "-1", "20.json", "../20"}) {
    error(std::string("run/profile?name=a&step=") + step, 400);
  }
  EXPECT_EQ(error("run/profiles?name=..", 404), "there is no run '..'");
}

TEST_F(Api, ExportsActiveAndRecentRunsToPrometheus) {
  folder.add("now", "{}", {0.5});
  track::ForeignRun old;
  old.add("evaluation/accuracy", 1, 1e9, 0.25);
  old.make(folder.path(), "old", "a test");
  const std::string reply = ask({.method = "GET", .path = "/metrics"}, 200);
  EXPECT_NE(reply.find("gallop_run_metric{run=\"now\",metric=\"accuracy\"} 0.5\n"),
            std::string::npos)
      << reply;
  EXPECT_NE(reply.find("gallop_run_state{run=\"now\",state=\"finished\"} 1\n"), std::string::npos);
  EXPECT_EQ(reply.find("run=\"old\""), std::string::npos);
}

TEST_F(Api, ReturnsAPageOfTheTable) {
  folder.add("a", "{optimizer: {name: sgd, lr: 0.1}}", {0.5});
  folder.add("b", "{optimizer: {name: adamw, lr: 1e-3}}", {0.9});
  folder.add("c", "{}", {kInfinity}, /*finished=*/false);
  folder.add("d", "{}", {}, /*finished=*/false);
  EXPECT_EQ(names_of(get("runs")).size(), 4);
  const Json table =
      get("runs?sort=metrics.accuracy&columns=metrics.accuracy,params.optimizer.lr,"
          "params.optimizer.name,tags.none");
  EXPECT_EQ(names_of(table), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(table.at("runs")[0].at("values"), (Json{0.5, 0.1, "sgd", nullptr}));
  EXPECT_EQ(table.at("runs")[2].at("values"), (Json{"Infinity", nullptr, nullptr, nullptr}));
  EXPECT_EQ(table.at("runs")[2].at("state"), "died");
  // Runs without a value are last in either order.
  EXPECT_EQ(names_of(get("runs?sort=metrics.accuracy&descending=1")), (Names{"c", "b", "a", "d"}));
  EXPECT_EQ(names_of(get("runs?sort=name&offset=1&limit=2")), (Names{"b", "c"}));
  EXPECT_EQ(names_of(get("runs?sort=name&offset=9")), Names());
  const Json some = get("runs?filter=metrics.accuracy%20%3E%200.6&sort=name");
  EXPECT_EQ(some.at("total"), 4);
  EXPECT_EQ(some.at("matching"), 2);
  EXPECT_EQ(names_of(some), (Names{"b", "c"}));
}

TEST_F(Api, KeepsTheDigitsOfTagsAndLargeIntegers) {
  const fs::path run = folder.add(
      "a", "{optimizer: {lr: 1e-3}, train: {seed: 9007199254740993, clip_norm: inf}}", {});
  track::write_labels(
      run, {.tags = {{"commit", "1234e56"}, {"number", "007"}, {"version", "1.10"}}, .note = ""});
  const Json table =
      get("runs?columns=params.optimizer.lr,params.train.seed,params.train.clip_norm,tags.commit,"
          "tags.number,tags.version");
  EXPECT_EQ(table.at("runs")[0].at("values"),
            (Json{0.001, "9007199254740993", "inf", "1234e56", "007", "1.10"}));
  // A text that is no finite number equals itself in a filter, and numeric tags are still numbers.
  EXPECT_EQ(names_of(get("runs?filter=params.train.clip_norm%20%3D%3D%20%22inf%22")), (Names{"a"}));
  EXPECT_EQ(names_of(get("runs?filter=tags.number%20%3D%3D%207")), (Names{"a"}));
}

TEST_F(Api, ReportsInvalidTableRequests) {
  folder.add("a", "{}", {0.5});
  EXPECT_EQ(error("runs?filter=metrics.acuracy%3E0", 400),
            "no run has 'metrics.acuracy'; did you mean 'metrics.accuracy'?");
  EXPECT_EQ(error("runs?columns=accuracy", 400),
            "'accuracy' is not a column; valid are metrics.NAME, params.NAME and tags.NAME");
  EXPECT_EQ(error("runs?limit=1001", 400), "'limit' must be an integer from 1 to 1000, not '1001'");
  error("runs?sort=nothing", 400);
  error("runs?descending=yes", 400);
  error("runs?offset=-1", 400);
}

TEST_F(Api, GroupsRuns) {
  folder.add("a", "{model: {depth: 20}}", {});
  folder.add("b", "{model: {depth: 8}}", {});
  folder.add("c", "{model: {depth: 20}}", {});
  folder.add("d", "{}", {});
  const Json groups = get("groups?by=params.model.depth").at("groups");
  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(groups[0].at("value"), "8");
  EXPECT_EQ(groups[1].at("runs"), (Json{"a", "c"}));
  EXPECT_EQ(groups[1].at("count"), 2);
  EXPECT_EQ(groups[2].at("runs"), Json::array({"d"}));
}

TEST_F(Api, ReturnsCurves) {
  folder.add("a", "{data: {batch_size: 16}}", {0.5, kNan, 0.8});
  folder.add("b", "{data: {batch_size: 32}}", {0.25});
  const Json answer = get("curves?metric=accuracy&runs=a,b&smoothing=0.5");
  EXPECT_EQ(answer.at("axis"), "step");
  const Json& a = answer.at("curves")[0];
  EXPECT_EQ(a.at("x"), (Json{10.0, 20.0, 30.0}));
  EXPECT_EQ(a.at("y"), (Json{0.5, "NaN", 0.8}));
  // (0.5 * 0.5 + 0.8) / 1.5, the one between counts for nothing.
  EXPECT_DOUBLE_EQ(a.at("smooth")[2].get<double>(), 0.7);
  EXPECT_EQ(a.at("count"), 3);
  EXPECT_EQ(a.at("latest"), (Json{{"value", 0.8}, {"step", 30}}));
  EXPECT_EQ(a.at("least"), (Json{{"value", 0.5}, {"step", 10}}));
  EXPECT_EQ(get("curves?metric=accuracy&runs=a,b&axis=samples").at("curves")[1].at("x"),
            Json::array({320.0}));
  const Json relative = get("curves?metric=accuracy&runs=a&axis=relative").at("curves")[0];
  EXPECT_GE(relative.at("x")[0].get<double>(), 0);
  EXPECT_LT(relative.at("x")[2].get<double>(), 600);
  const Json part = get("curves?metric=accuracy&runs=a&from=25&to=40").at("curves")[0];
  EXPECT_EQ(part.at("x"), (Json{20.0, 30.0}));  // A line leads into it.
  EXPECT_EQ(part.at("count"), 3);
}

TEST_F(Api, HasNoMinimumOrMaximumWithoutFiniteValues) {
  folder.add("a", "{}", {kNan, kNan});
  folder.add("b", "{}", {0.25});
  const Json curve = get("curves?metric=accuracy&runs=a").at("curves")[0];
  EXPECT_EQ(curve.at("latest"), (Json{{"value", "NaN"}, {"step", 20}}));
  EXPECT_EQ(curve.at("least"), nullptr);
  EXPECT_EQ(curve.at("most"), nullptr);
  EXPECT_EQ(names_of(get("runs?sort=metrics.accuracy")), (Names{"b", "a"}));
  EXPECT_EQ(names_of(get("runs?sort=metrics.accuracy&descending=1")), (Names{"b", "a"}));
}

TEST_F(Api, DownsamplesCurvesAndExportsAllPoints) {
  const fs::path run = folder.add("a", "{}", {});
  std::vector<track::Record> records;
  for (int64_t step = 1; step <= 5000; ++step) {
    const double value = step == 3333 ? 100.0 : std::sin(static_cast<double>(step));
    records.push_back({.step = step,
                       .time = 1e9 + static_cast<double>(step),
                       .kind = "evaluation",
                       .values = {{"x", value}}});
  }
  track::write_log(run / "metrics.log", records);
  const Json curve = get("curves?metric=x&runs=a&points=100").at("curves")[0];
  EXPECT_LE(curve.at("x").size(), 100);
  EXPECT_EQ(curve.at("count"), 5000);
  EXPECT_NE(std::find(curve.at("y").begin(), curve.at("y").end(), Json(100.0)),
            curve.at("y").end());
  EXPECT_EQ(curve.at("most"), (Json{{"value", 100.0}, {"step", 3333}}));
  const std::string csv = text("export.csv?metric=x&runs=a");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5001);
  EXPECT_TRUE(csv.starts_with("run,metric,step,time,value\r\na,x,1,1000000001,0.8414709848078965"));
  EXPECT_NE(text("plot.svg?metric=x&runs=a&logx=1&smoothing=0.9").find("<svg"), std::string::npos);
}

TEST_F(Api, ReportsInvalidCurveRequests) {
  folder.add("a", "{data: {batch_size: none}}", {0.5});
  EXPECT_EQ(error("curves?metric=acuracy&runs=a", 400),
            "none of these runs has the metric 'acuracy'; did you mean 'accuracy'?");
  EXPECT_EQ(error("curves?metric=accuracy&runs=a&axis=samples", 422),
            "a: its recipe has no numeric data.batch_size, which this axis requires");
  error("curves?metric=accuracy&runs=a&axis=epoch", 400);
  error("curves?metric=accuracy&runs=", 400);
  EXPECT_EQ(error("curves?metric=accuracy&runs=a,bb", 404), "there is no run 'bb'");
  EXPECT_EQ(get("curves?metric=accuracy&runs=a,a,a").at("curves").size(), 1);
  error("curves?metric=accuracy&runs=a&smoothing=2", 400);
  error("curves?metric=accuracy&runs=a&smoothing=nan", 400);
  error("curves?metric=accuracy&runs=a&points=7", 400);
  error("curves?runs=a", 400);
}

TEST_F(Api, CountsTokensOfText) {
  folder.add("text", "{data: {name: text, batch_size: 4, context: 64}}", {0.5});
  folder.add("image", "{data: {name: mnist, batch_size: 4, context: 64}}", {0.5});
  EXPECT_EQ(get("curves?metric=accuracy&runs=text&axis=tokens").at("curves")[0].at("x"),
            Json::array({2560.0}));
  EXPECT_EQ(error("curves?metric=accuracy&runs=image&axis=tokens", 422),
            "image: only text data have tokens");
  // A curve that cannot be drawn does not affect the others.
  const Json both = get("curves?metric=accuracy&runs=image,text&axis=tokens").at("curves");
  EXPECT_EQ(both[0].at("trouble"), "image: only text data have tokens");
  EXPECT_EQ(both[0].at("x"), Json::array());
  EXPECT_FALSE(both[1].contains("trouble"));
  EXPECT_EQ(both[1].at("x").size(), 1);
  EXPECT_EQ(get("band?metric=accuracy&axis=tokens").at("groups").size(), 1);
  EXPECT_EQ(error("band?metric=accuracy&axis=tokens&filter=name%3D%3D%22image%22", 422),
            "image: only text data have tokens");
}

TEST_F(Api, ReturnsTheBandOfEachGroup) {
  folder.add("a", "{model: {name: x}}", {0.5, 0.7});
  folder.add("b", "{model: {name: x}}", {0.7});
  folder.add("c", "{model: {name: y}}", {0.1});
  const Json groups = get("band?metric=accuracy&by=params.model.name").at("groups");
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0].at("value"), "x");
  EXPECT_EQ(groups[0].at("runs"), 2);
  EXPECT_EQ(groups[0].at("x"), (Json{10.0, 20.0}));
  EXPECT_DOUBLE_EQ(groups[0].at("mean")[0].get<double>(), 0.6);
  EXPECT_DOUBLE_EQ(groups[0].at("low")[0].get<double>(), 0.6 - 0.2 / std::sqrt(2));
  EXPECT_EQ(groups[0].at("most"), (Json{0.7, 0.7}));
  EXPECT_EQ(get("band?metric=accuracy").at("groups")[0].at("runs"), 3);
  // A part of it, and one more on each side.
  const Json part = get("band?metric=accuracy&from=15&to=15").at("groups")[0];
  EXPECT_EQ(part.at("x"), (Json{10, 20}));
  EXPECT_EQ(get("band?metric=accuracy&filter=name%3D%3D%22a%22").at("groups")[0].at("runs"), 1);
}

TEST_F(Api, ReturnsAllDetailsOfARun) {
  const fs::path run = folder.add("a", "{optimizer: {name: sgd, lr: 0.2}}", {0.5, 0.75});
  std::ofstream(run / "origins.yaml")
      << "optimizer:\n  name: sgd  # r.yaml:1:2\n"
      << "  lr: 0.1    # default\n"
      << "# from 2026-01-01 on, on the command line: optimizer.lr=0.2\n";
  fs::create_directories(run / "checkpoints" / "step-00000020");
  std::ofstream(run / "checkpoints" / "step-00000020" / "manifest.json")
      << R"({"format": 1, "step": 20, "files": {"a": {"bytes": 5}, "b": {"bytes": 7}}})";
  std::ofstream(run / "checkpoints" / "best") << "step-00000020";
  const Json json = get("run?name=a");
  EXPECT_EQ(json.at("state"), "finished");
  EXPECT_EQ(json.at("steps"), 20);
  EXPECT_EQ(json.at("trouble"), "");
  EXPECT_EQ(json.at("metrics")[0].at("name"), "accuracy");
  EXPECT_EQ(json.at("metrics")[0].at("most_step"), 20);
  EXPECT_EQ(json.at("params"),
            (Json{{{"name", "optimizer.lr"}, {"value", "0.2"}, {"origin", "command line, later"}},
                  {{"name", "optimizer.name"}, {"value", "sgd"}, {"origin", "r.yaml:1:2"}}}));
  EXPECT_EQ(json.at("checkpoints")[0].at("bytes"), 12);
  EXPECT_EQ(json.at("checkpoints")[0].at("marks"), Json::array({"best"}));
  EXPECT_EQ(json.at("ends")[0].at("reason"), "finished");
  EXPECT_EQ(get("run/recipe?name=a").at("recipe"), "{optimizer: {name: sgd, lr: 0.2}}");
  const Json log = get("run/log?name=a&kind=evaluation&offset=1&limit=5");
  EXPECT_EQ(log.at("total"), 2);
  EXPECT_EQ(log.at("records").size(), 1);
  EXPECT_EQ(log.at("records")[0].at("values").at("accuracy"), 0.75);
}

TEST_F(Api, ReportsUnreadableFilesOfARun) {
  const fs::path run = folder.add("a", "{}", {0.5, 0.75});
  std::ofstream(run / "run.json") << "{";
  std::ofstream(run / "labels.json") << "[";
  std::fstream(run / "metrics.log", std::ios::in | std::ios::out).seekp(70).put('#');
  const Json json = get("run?name=a");
  const std::string trouble = json.at("trouble");
  for (const char* part : {"run.json", "labels.json"}) {
    EXPECT_NE(trouble.find(part), std::string::npos) << trouble;
  }
  EXPECT_EQ(json.at("metrics")[0].at("count"), 2);
  std::ofstream(run / "recipe.yaml") << "a: [";
  EXPECT_EQ(get("runs").at("runs")[0].at("state"), "unreadable");
  error("curves?metric=accuracy&runs=a&axis=samples", 422);
  EXPECT_EQ(get("curves?metric=accuracy&runs=a").at("curves")[0].at("count"), 2);
}

TEST_F(Api, ComparesRuns) {
  folder.add("a", "{optimizer: {name: sgd, lr: 0.2}}", {});
  folder.add("b", "{optimizer: {name: sgd, lr: 0.1, momentum: 0.9}}", {});
  const Json params = get("compare?runs=a,b").at("params");
  ASSERT_EQ(params.size(), 3);
  EXPECT_EQ(params[0],
            (Json{{"name", "optimizer.lr"}, {"values", {"0.2", "0.1"}}, {"differs", true}}));
  EXPECT_EQ(params[1].at("values"), (Json{nullptr, "0.9"}));
  EXPECT_EQ(params[2].at("differs"), false);
  EXPECT_EQ(get("compare?runs=a,b").at("info")[0].at("name"), "version");
  std::ofstream(folder.path() / "b" / "run.json") << "{\"version\": ";
  EXPECT_EQ(get("compare?runs=a,b").at("info")[0].at("name"), "version");
}

TEST_F(Api, SupportsControlCharactersInNames) {
  folder.add("a", "{}", {0.5});
  fs::rename(folder.add("b", "{}", {0.75}), folder.path() / "new\nline");
  EXPECT_EQ(names_of(get("runs?sort=name")), (Names{"a", "new\nline"}));
  EXPECT_EQ(get("run?name=new%0Aline").at("metrics")[0].at("last"), 0.75);
  EXPECT_EQ(get("curves?metric=accuracy&runs=a,new%0Aline").at("curves").size(), 2);
  EXPECT_EQ(names_of(get("runs?filter=name%3D%3D%22new%0Aline%22")), (Names{"new\nline"}));
  post("note", R"({"run": "new\nline", "text": "good"})");
  EXPECT_EQ(get("run?name=new%0Aline").at("note"), "good");
}

TEST_F(Api, ReturnsTheCostOfARun) {
  folder.add("a", "{}", {0.5}, /*finished=*/false);
  track::LogWriter log(folder.path() / "a" / "metrics.log", 10, {});
  log.append({.step = 20,
              .kind = "system",
              .values = {{"joules", 7.2e6}},
              .texts = {{"energy", "estimated"}}});
  Json energy = get("run?name=a").at("energy");
  EXPECT_EQ(energy.at("joules"), 7.2e6);
  EXPECT_EQ(energy.at("kwh"), 2);
  EXPECT_FALSE(energy.contains("co2_grams"));
  EXPECT_FALSE(energy.contains("price"));
  surroundings = {.grams_per_kwh = 50, .pue = 1.5, .price_per_hour = 3600};
  energy = get("run?name=a").at("energy");
  EXPECT_EQ(energy.at("kwh"), 3);
  EXPECT_EQ(energy.at("co2_grams"), 150);
  // By the hour and back.
  EXPECT_DOUBLE_EQ(energy.at("price").get<double>(), energy.at("seconds").get<double>());
}

TEST_F(Api, ChangesLabels) {
  folder.add("a", "{}", {});
  post("tag", R"({"run": "a", "key": "team", "value": "vision"})");
  post("tag", R"({"run": "a", "key": "good", "value": ""})");
  post("note", R"({"run": "a", "text": "<b>line</b>\nand \"quotes\""})");
  EXPECT_EQ(get("run?name=a").at("tags"), (Json{{"good", ""}, {"team", "vision"}}));
  EXPECT_EQ(get("runs").at("runs")[0].at("note"), "<b>line</b>\nand \"quotes\"");
  EXPECT_EQ(get("runs?columns=tags.team,tags.good").at("runs")[0].at("values"),
            (Json{"vision", ""}));
  post("tag", R"({"run": "a", "key": "team", "value": null})");
  EXPECT_EQ(get("run?name=a").at("tags"), (Json{{"good", ""}}));
}

TEST_F(Api, RejectsInvalidChanges) {
  folder.add("a", "{}", {});
  for (const char* body :
       {"", "[]", "{", "{}", R"({"run": "a"})", R"({"run": 1, "key": "k", "value": "v"})",
        R"({"run": "a", "key": "", "value": "v"})", R"({"run": "a", "key": "a=b", "value": "v"})",
        R"({"run": "a", "key": "k"})", R"({"run": "a", "key": "k", "value": 3})",
        "{\"run\": \"\xff\"}"}) {
    post("tag", body, 400);
  }
  for (const char* name : {"b", "../a", ".", "..", "", "a/", "/etc", "a\\u0000"}) {
    post("delete", fmt::format(R"({{"run": "{}"}})", name), 404);
    post("restore", fmt::format(R"({{"run": "{}"}})", name), 404);
  }
  EXPECT_TRUE(fs::exists(folder.path() / "a"));
}

TEST_F(Api, DeletesToTheTrashAndRestores) {
  const fs::path run = folder.add("a", "{}", {});
  {
    const auto held = track::RunFolder::open(run);
    EXPECT_NE(post("delete", R"({"run": "a"})", 400)
                  .at("error")
                  .get<std::string>()
                  .find("is training this run"),
              std::string::npos);
  }
  post("delete", R"({"run": "a"})");
  EXPECT_EQ(get("session").at("runs"), 0);
  error("run?name=a", 404);
  post("restore", R"({"run": "a"})");
  EXPECT_EQ(get("session").at("runs"), 1);
}

TEST_F(Api, SupportsNamesWithCommasMarkupAndUnicode) {
  const Names names = {"a", "a,b", "b", "<img src=x onerror=alert(1)>", "ü & ö"};
  for (const std::string& name : names) folder.add(name, "{}", {0.5});
  EXPECT_EQ(names_of(get("runs?sort=name")).size(), 5);
  const auto runs_of = [&](const std::string& query) {
    const Json answer = get("curves?metric=accuracy&runs=" + query);
    Names found;
    for (const Json& curve : answer.at("curves")) {
      found.push_back(curve.at("run"));
    }
    return found;
  };
  EXPECT_EQ(runs_of("a%2Cb"), (Names{"a,b"}));
  EXPECT_EQ(runs_of("b%2Ca"), (Names{"b", "a"}));
  EXPECT_EQ(runs_of("b,a%2Cb,a"), (Names{"b", "a,b", "a"}));
  EXPECT_EQ(runs_of("%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"), (Names{names[3]}));
  EXPECT_EQ(get("run?name=%C3%BC%20%26%20%C3%B6").at("name"), names[4]);
}

TEST(Site, HasThePageAndHeadersOnEveryAnswer) {
  track::RunsOfTest folder;
  Site site({.runs = folder.path(), .version = "1", .port = 80});
  const http::Headers host = {{"host", "localhost:80"}};
  const auto header = [](const http::Response& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return std::string();
  };
  const auto page = site.answer({.method = "GET", .path = "/", .headers = host});
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_EQ(header(page, "Cache-Control"), "no-cache");
  const std::string tag = header(page, "ETag");
  const auto again = site.answer(
      {.method = "GET", .path = "/", .headers = {{"if-none-match", tag}, host.front()}});
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
  const auto chart = site.answer({.method = "GET", .path = "/chart.js", .headers = host});
  EXPECT_NE(chart.body.find("Chart.js v3.9"), std::string::npos);
  EXPECT_GT(chart.body.size(), 100'000);
  for (const char* path : {"/", "/chart.js", "/api/session", "/api/nothing", "/nothing"}) {
    const auto response = site.answer({.method = "GET", .path = path, .headers = host});
    EXPECT_NE(header(response, "Content-Security-Policy").find("default-src 'none'"),
              std::string::npos);
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(header(response, "Cross-Origin-Resource-Policy"), "same-origin");
  }
  const auto refused = site.refuse({.method = "GET", .path = "/", .headers = {{"host", "evil"}}});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 403);
  EXPECT_NE(header(*refused, "Content-Security-Policy"), "");
  EXPECT_FALSE(site.refuse({.method = "GET", .path = "/", .headers = host}));
}

}  // namespace
}  // namespace gallop::ui::api
