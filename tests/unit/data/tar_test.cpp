#include <map>

#include "gallop/data/readers.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

const std::string kJpeg = make_jpeg(make_picture(8, 8, 3, 1));
const std::string kPng = make_png(6, 5, make_picture(6, 5, 3, 2).pixels);

Members labeled(const std::vector<int>& labels) {
  Members members;
  for (size_t i = 0; i < labels.size(); ++i) {
    members.emplace_back(std::to_string(i) + ".jpg", kJpeg);
    members.emplace_back(std::to_string(i) + ".cls", std::to_string(labels[i]));
  }
  return members;
}

std::unique_ptr<ImageParts> read(const std::string& path, const TarConfig& config = {},
                                 bool skip_broken = false) {
  return read_tar(config, {.path = path, .skip_broken = skip_broken, .threads = 2});
}

TEST(TarSet, ReadsOneShardWithLabels) {
  const TestFolder folder;
  const fs::path path = folder.add(
      "x.tar", make_tar({{"a.png", kPng}, {"a.cls", "2"}, {"b.jpg", kJpeg}, {"b.cls", "0"}}));
  const auto parts = read(path);
  const ImageSet& images = *parts->train;
  ASSERT_EQ(images.size(), 2);
  EXPECT_EQ(parts->test, nullptr);
  EXPECT_EQ(images.label(0), 2);
  EXPECT_EQ(images.class_names(), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(images.describe(1), path.string() + ": b.jpg");
  Image image;
  images.read(0, {}, image);
  EXPECT_EQ(image.pixels, make_picture(6, 5, 3, 2).pixels);
}

TEST(TarSet, TakesClassNamesFromTheOptionOrTheFile) {
  const TestFolder folder;
  const fs::path path = folder.add("x.tar", make_tar(labeled({1, 0})));
  folder.add("classes.txt", "cat\r\ndog\n\n");
  EXPECT_EQ(read(path)->train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(read(folder.name())->train->class_names()[1], "dog");
  const auto parts = read(path, {.classes = {"x", "y", "z"}});
  EXPECT_EQ(parts->train->class_names().size(), 3u);
  EXPECT_TRUE(contains(data_error([&] { read(path, {.classes = {"x"}}); }),
                       "x.tar: 0.jpg: has label 1, but there are 1 classes (0 to 0)"));
  const auto skipped = read(path, {.classes = {"x"}}, true);
  EXPECT_EQ(skipped->train->size(), 1);
  ASSERT_EQ(skipped->skipped.size(), 1u);
  EXPECT_EQ(skipped->skipped[0].reason, "invalid label");
  EXPECT_TRUE(contains(skipped->skipped[0].first, path.string() + ": 0.jpg: has label 1"));
}

TEST(TarSet, TakesPartsFromFoldersOrNames) {
  const TestFolder by_folder, by_name;
  by_folder.add("train/0.tar", make_tar(labeled({0, 1})));
  by_folder.add("train/1.tar", make_tar(labeled({2})));
  by_folder.add("val/0.tar", make_tar(labeled({1})));
  by_folder.add("test/0.tar", make_tar(labeled({2, 2, 2, 2})));
  by_name.add("some-train-0.tar", make_tar(labeled({0, 1})));
  by_name.add("some-train-1.tar", make_tar(labeled({2})));
  by_name.add("some-val.tar", make_tar(labeled({1})));
  by_name.add("some-test-0.tar", make_tar(labeled({2, 2, 2, 2})));
  for (const std::string& path : {by_folder.name(), by_name.name(),
                                  by_name.name() + "/some-{train-0,train-1,val,test-0}.tar"}) {
    const auto parts = read(path);
    EXPECT_EQ(parts->train->size(), 3);
    EXPECT_EQ(parts->validation->size(), 1);
    EXPECT_EQ(parts->test->size(), 4);
    EXPECT_EQ(parts->files.size(), 4u);
    Image image;
    for (int64_t i = 0; i < 3; ++i) parts->train->read(i, {}, image);
    EXPECT_TRUE(contains(parts->train->describe(2), "1.tar: 0.jpg"));
  }
  by_name.add("extra.tar", make_tar(labeled({0})));
  EXPECT_TRUE(contains(data_error([&] { read(by_name.name()); }),
                       "extra.tar: its name specifies no split"));
}

TEST(TarSet, TakesAllForTrainingWhereNothingSaysOtherwise) {
  const TestFolder folder;
  folder.add("shard-0000.tar", make_tar(labeled({0})));
  folder.add("shard-0001.tar", make_tar(labeled({1})));
  EXPECT_EQ(read(folder.name())->train->size(), 2);
  EXPECT_EQ(read(folder.name() + "/shard-{0000..0001}.tar")->train->size(), 2);
  EXPECT_TRUE(contains(data_error([&] { read(folder.name() + "/shard-{0000..0002}.tar"); }),
                       "shard-0002.tar"));
}

TEST(TarSet, TakesClassesAndPartsFromFoldersInTheArchive) {
  const TestFolder folder;
  const fs::path path = folder.add("x.tar", make_tar({{"./train/dog/1.jpg", kJpeg},
                                                      {"./train/cat/1.jpg", kJpeg},
                                                      {"./test/dog/1.png", kPng}}));
  const auto parts = read(path);
  EXPECT_EQ(parts->train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(parts->train->label(0), 1);
  EXPECT_EQ(parts->test->label(0), 1);
  EXPECT_EQ(parts->validation, nullptr);

  const fs::path plain =
      folder.add("y.tar", make_tar({{"b/test/1.jpg", kJpeg}, {"a/1.jpg", kJpeg}}));
  EXPECT_EQ(read(plain)->train->class_names(), (std::vector<std::string>{"a", "b"}));
  const fs::path mixed =
      folder.add("z.tar", make_tar({{"train/cat/1.jpg", kJpeg}, {"cat/1.jpg", kJpeg}}));
  EXPECT_TRUE(contains(data_error([&] { read(mixed); }), "cat/1.jpg: is in no folder of a split"));
  const fs::path unknown =
      folder.add("u.tar", make_tar({{"train/cat/1.jpg", kJpeg}, {"test/cow/1.jpg", kJpeg}}));
  EXPECT_TRUE(contains(data_error([&] { read(unknown); }),
                       "test/cow/1.jpg: its folder 'cow' is none of the 1 classes"));
}

// As in folders of images, whatever is around the classes.
TEST(TarSet, TakesTheOutermostFolderAsClass) {
  const TestFolder folder;
  int archives = 0;
  const auto read_all = [&](const std::vector<std::string>& names) {
    Members members;
    for (const std::string& name : names) members.emplace_back(name, kJpeg);
    return read(folder.add(std::to_string(archives++) + ".tar", make_tar(members)));
  };
  for (const std::string around : {"", "train/", "pictures/", "pictures/train/"}) {
    const auto parts = read_all({around + "dog/1.jpg", around + "cat/1.jpg",
                                 around + "cat/side/1.jpg", around + "cat/side/dog/2.jpg"});
    EXPECT_EQ(parts->train->class_names(), (std::vector<std::string>{"cat", "dog"})) << around;
    EXPECT_EQ(parts->train->label(0), 1);
    EXPECT_EQ(parts->train->label(3), 0);
  }
  const auto nested = read_all({"train/dog/a/1.jpg", "train/cat/b/1.jpg", "test/cat/1.jpg"});
  EXPECT_EQ(nested->train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(nested->test->size(), 1);
}

TEST(TarSet, TakesTheSplitsInsideOfAFolder) {
  const TestFolder folder;
  const auto parts =
      read(folder.add("x.tar", make_tar({{"pictures/train/cat/1.jpg", kJpeg},
                                         {"pictures/train/dog/1.jpg", kJpeg},
                                         {"pictures/__MACOSX/train/cat/._1.jpg", "x"},
                                         {"pictures/test/dog/1.jpg", kJpeg}})));
  EXPECT_EQ(parts->train->size(), 2);
  ASSERT_NE(parts->test, nullptr);
  EXPECT_EQ(parts->test->label(0), 1);
}

TEST(TarSet, TakesClassesOfShardsThatNameTheirSplit) {
  const TestFolder folder;
  folder.add("x-train.tar", make_tar({{"ILSVRC_train/cat/1.jpg", kJpeg},
                                      {"ILSVRC_train/dog/1.jpg", kJpeg},
                                      {"ILSVRC_train/dog/side/1.jpg", kJpeg}}));
  folder.add("x-val.tar", make_tar({{"ILSVRC_val/cat/1.jpg", kJpeg}}));
  const auto parts = read(folder.name());
  EXPECT_EQ(parts->train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(parts->train->label(2), 1);
  EXPECT_EQ(parts->validation->label(0), 0);
}

TEST(TarSet, RefusesFoldersThatMayBeClassesOrNot) {
  const TestFolder folder;
  const fs::path path =
      folder.add("x.tar", make_tar({{"part1/cat/1.jpg", kJpeg}, {"part2/dog/1.jpg", kJpeg}}));
  EXPECT_TRUE(contains(data_error([&] { read(path); }),
                       "x.tar: part1/cat/1.jpg: all images are in two folders or more, so that the "
                       "class may be 'part1' or 'cat'; name the classes in data.classes"));
  EXPECT_EQ(read(path, {.classes = {"dog", "cat"}})->train->label(0), 1);
  EXPECT_EQ(read(path, {.classes = {"part1", "part2"}})->train->label(1), 1);
  const fs::path inside =
      folder.add("y.tar", make_tar({{"bottle/train/1.jpg", kJpeg}, {"cable/1.jpg", kJpeg}}));
  EXPECT_TRUE(contains(data_error([&] { read(inside); }),
                       "bottle/train/1.jpg: is in a folder 'train' inside of another"));
}

TEST(TarSet, SaysWhyNoImageIsLeft) {
  const TestFolder folder;
  const fs::path links =
      folder.add("x.tar", make_tar_link("cat/1.jpg", "none.jpg") + make_tar({{"a.txt", "x"}}));
  const std::string error = data_error([&] { read(links, {}, true); });
  EXPECT_TRUE(contains(error, "no usable images (.jpg"));
  EXPECT_TRUE(contains(error, "in 1 shard; 1 skipped (link that leads to no member), the first: "));
  const fs::path flat = folder.add("y.tar", make_tar({{"1.jpg", kJpeg}}));
  EXPECT_TRUE(contains(data_error([&] { read(flat, {}, true); }),
                       "no images for training; 1 skipped (image without a label), the first: "));
}

TEST(TarSet, RefusesImagesWithoutALabel) {
  const TestFolder folder;
  const fs::path some =
      folder.add("x.tar", make_tar({{"1.jpg", kJpeg}, {"1.cls", "0"}, {"2.jpg", kJpeg}}));
  EXPECT_TRUE(
      contains(data_error([&] { read(some); }), "x.tar: 2.jpg: has no .cls, though others have"));
  EXPECT_EQ(read(some, {}, true)->train->size(), 1);
  const fs::path none = folder.add("y.tar", make_tar({{"1.jpg", kJpeg}}));
  EXPECT_TRUE(contains(data_error([&] { read(none); }), "neither a .cls nor a class folder"));
  const fs::path empty = folder.add("z.tar", make_tar({{"notes.txt", "x"}}));
  EXPECT_TRUE(contains(data_error([&] { read(empty); }),
                       "no images (.jpg, .jpeg, .png, .gif, .webp, .tif or .tiff) in 1 shard"));
  make_folders(folder.path() / "none");
  EXPECT_TRUE(contains(data_error([&] { read(folder.name() + "/none"); }), "no .tar files in it"));
}

TEST(TarSet, NamesShardAndMemberOfDamage) {
  const TestFolder folder;
  const std::string archive = make_tar(labeled({0, 1, 2}));
  folder.add("a-0.tar", archive);
  const fs::path cut = folder.add("a-1.tar", archive.substr(0, archive.size() / 2));
  EXPECT_TRUE(contains(data_error([&] { read(folder.name()); }), cut.string() + ": truncated "));
  const auto parts = read(folder.name(), {}, true);
  EXPECT_GE(parts->train->size(), 4);
  EXPECT_TRUE(contains(parts->skipped[0].first, cut.string() + ": truncated"));
  fs::create_symlink(folder.path() / "none", folder.path() / "a-2.tar");
  EXPECT_TRUE(contains(data_error([&] { read(folder.name()); }), "a-1.tar: truncated"));
  const auto more = read(folder.name(), {}, true);
  ASSERT_EQ(more->skipped.size(), 1u);
  EXPECT_EQ(more->skipped[0].count, 2) << "one is cut, and one is a link to nowhere";
  fs::remove(folder.path() / "a-2.tar");
  fs::remove(folder.path() / "a-0.tar");
  folder.add("a-1.tar", "no tar");
  EXPECT_TRUE(contains(data_error([&] { read(folder.name(), {}, true); }), "not a tar archive"));
}

TEST(TarSet, NamesTheBrokenImageAndShardsThatShrink) {
  const TestFolder folder;
  const fs::path path = folder.add(
      "x.tar",
      make_tar({{"cat/1.jpg", ""}, {"cat/2.jpg", kJpeg.substr(0, 300)}, {"cat/3.jpg", kJpeg}}));
  const auto parts = read(path);
  const auto error = [&](int64_t index) {
    return data_error([&] {
      Image image;
      parts->train->read(index, {}, image);
    });
  };
  EXPECT_EQ(error(0), path.string() + ": cat/1.jpg: the file is empty");
  EXPECT_TRUE(contains(error(1), "x.tar: cat/2.jpg: damaged JPEG: "));
  fs::resize_file(path, 1000);
  EXPECT_TRUE(contains(error(2), "cat/3.jpg: the archive became shorter"));
}

TEST(TarSet, SkipsEverythingThatCannotBeTakenAndCountsIt) {
  const TestFolder folder;
  std::string archive =
      make_tar_link("dangling.jpg", "none.jpg") + make_tar_member("dangling.cls", "0");
  for (const auto& [name, content] : labeled({0, 1, 2})) archive += make_tar_member(name, content);
  archive += make_tar_link("3.jpg", "./1.jpg") + make_tar_link("3.cls", "2.cls", '1');
  archive += make_tar({{"lonely.cls", "1"},
                       {"unlabeled.jpg", kJpeg},
                       {"bad.jpg", kJpeg},
                       {"bad.cls", "cat"},
                       {"empty.jpg", kJpeg},
                       {"empty.cls", ""}});
  const fs::path path = folder.add("x.tar", archive);
  EXPECT_TRUE(contains(data_error([&] { read(path); }),
                       "x.tar: dangling.jpg: is a link to 'none.jpg', which is not in the archive "
                       "(3 more like it or otherwise unusable); repair or remove it"));
  const auto parts = read(path, {}, true);
  ASSERT_EQ(parts->train->size(), 4);
  EXPECT_EQ(parts->train->label(3), 2);
  Image image;
  EXPECT_NO_THROW(parts->train->read(3, {}, image));
  std::map<std::string, int64_t> counts;
  for (const SkipCount& one : parts->skipped) counts[one.reason] = one.count;
  EXPECT_EQ(counts, (std::map<std::string, int64_t>{{"link that leads to no member", 1},
                                                    {"label without an image", 1},
                                                    {"image without a label", 1},
                                                    {"invalid label", 2}}));
}

TEST(TarSet, TakesATestPartWithoutLabelsToPredict) {
  const TestFolder by_name, inside;
  by_name.add("x-train.tar", make_tar(labeled({0, 1})));
  by_name.add("x-test.tar", make_tar({{"1.jpg", kJpeg}, {"2.jpg", kJpeg}}));
  const fs::path path = inside.add(
      "x.tar",
      make_tar({{"train/cat/1.jpg", kJpeg}, {"test/1.jpg", kJpeg}, {"test/2.jpg", kJpeg}}));
  for (const std::string& name : {by_name.name(), path.string()}) {
    const auto parts = read(name);
    EXPECT_EQ(parts->test, nullptr);
    ASSERT_NE(parts->unlabeled_test, nullptr);
    EXPECT_EQ(parts->unlabeled_test->size(), 2);
    ASSERT_EQ(parts->notes.size(), 1u);
    EXPECT_TRUE(contains(parts->notes[0], "the 2 images of the test split have no class"));
  }
  by_name.add("x-test.tar", make_tar({{"1.jpg", kJpeg}, {"1.cls", "0"}, {"2.jpg", kJpeg}}));
  EXPECT_TRUE(contains(data_error([&] { read(by_name.name()); }), "2.jpg: has no .cls"));
}

TEST(TarSet, IgnoresHiddenAndSystemFilesWithANote) {
  const TestFolder folder;
  const auto parts = read(folder.add("x.tar", make_tar({{"cat/1.jpg", kJpeg},
                                                        {"cat/._1.jpg", "x"},
                                                        {"__MACOSX/cat/._1.jpg", "x"},
                                                        {"cat/.ipynb_checkpoints/1.jpg", kJpeg},
                                                        {"dog/2.jpg", kJpeg}})));
  EXPECT_EQ(parts->train->size(), 2);
  EXPECT_EQ(parts->train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(parts->notes.size(), 1u);
  EXPECT_TRUE(contains(parts->notes[0],
                       "3 images ignored in hidden or system files and folders, "
                       "such as cat/._1.jpg"));
}

TEST(TarSet, ReadsHeadersWithoutDecoding) {
  const TestFolder folder;
  const std::string turned = with_exif(make_jpeg(make_picture(8, 12, 1, 1)), make_exif(6));
  const fs::path path = folder.add(
      "x.tar", make_tar({{"cat/1.jpg", turned}, {"cat/2.png", kPng}, {"cat/3.jpg", "x"}}));
  const auto parts = read(path);
  const ImageHeader header = parts->train->header(0);
  EXPECT_EQ(header.shape, (ImageShape{12, 8, 1}));
  EXPECT_EQ(header.orientation, 6);
  EXPECT_EQ(parts->train->header(1).shape, (ImageShape{6, 5, 3}));
  EXPECT_TRUE(contains(data_error([&] { parts->train->header(2); }),
                       "x.tar: cat/3.jpg: truncated: only 1 bytes"));
  const auto stored = read_tar({}, {.path = path.string(), .orient = false});
  EXPECT_EQ(stored->train->header(0).shape, (ImageShape{8, 12, 1}));
  EXPECT_EQ(stored->train->header(0).orientation, 1);
  EXPECT_NE(stored->train->identity(), parts->train->identity());
  Image image;
  stored->train->read(0, {}, image);
  EXPECT_EQ(image.width, 12);
  parts->train->read(0, {}, image);
  EXPECT_EQ(image.width, 8);
}

TEST(TarSet, OpensMoreShardsThanItKeepsOpen) {
  const TestFolder folder;
  for (int i = 0; i < 300; ++i) {
    folder.add("s-" + std::to_string(1000 + i) + ".tar", make_tar({{"cat/1.jpg", kJpeg}}));
  }
  const auto parts = read(folder.name());
  ASSERT_EQ(parts->train->size(), 300);
  Image image;
  for (int64_t i = 0; i < 300; ++i) EXPECT_NO_THROW(parts->train->read(i, {}, image));
}

}  // namespace
}  // namespace gallop::data
