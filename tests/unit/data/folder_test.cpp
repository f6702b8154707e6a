#include "gallop/data/readers.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"
#include "unit/open_files.h"

namespace gallop::data {
namespace {

const std::string kJpeg = make_jpeg(make_picture(8, 8, 3, 1));
const std::string kPng = make_png(6, 5, make_picture(6, 5, 3, 2).pixels);

std::unique_ptr<ImageParts> read(const TestFolder& folder) {
  return read_folder({}, {.path = folder.name(), .skip_broken = false, .threads = 2});
}

std::string read_error(const TestFolder& folder) {
  return data_error([&] { read(folder); });
}

TEST(Folder, ReadsClassesWithoutParts) {
  const TestFolder folder;
  folder.add("dog/2.JPG", kJpeg);
  folder.add("dog/1.png", kPng);
  folder.add("cat/x.Jpeg", kJpeg);
  const auto parts = read(folder);
  EXPECT_EQ(parts->validation, nullptr);
  EXPECT_EQ(parts->test, nullptr);
  const ImageSet& images = *parts->train;
  ASSERT_EQ(images.size(), 3);
  EXPECT_EQ(images.class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(images.describe(1), folder.name() + "/dog/1.png");
  EXPECT_EQ(images.describe(2), folder.name() + "/dog/2.JPG");
  EXPECT_EQ(images.label(0), 0);
  EXPECT_EQ(images.label(2), 1);
  EXPECT_FALSE(images.stored_shape());
  Image image;
  images.read(1, {}, image);
  EXPECT_EQ(image.pixels, make_picture(6, 5, 3, 2).pixels);
  images.read(0, {.channels = 1}, image);
  EXPECT_EQ(image.height, 8);
  EXPECT_EQ(image.channels, 1);
  EXPECT_TRUE(parts->notes.empty());
}

TEST(Folder, FindsPartsUnderAllNames) {
  for (const std::string name : {"val", "validation", "valid"}) {
    const TestFolder folder;
    for (const std::string& part : {std::string("train"), name, std::string("test")}) {
      folder.add(part + "/cat/1.jpg", kJpeg);
      folder.add(part + "/dog/1.jpg", kJpeg);
    }
    folder.add("train/dog/2.jpg", kJpeg);
    const auto parts = read(folder);
    EXPECT_EQ(parts->train->size(), 3);
    EXPECT_EQ(parts->validation->size(), 2);
    EXPECT_EQ(parts->test->size(), 2);
    EXPECT_EQ(parts->files.size(), 3u);
    folder.add("Valid2/cat/1.jpg", kJpeg);
    EXPECT_NO_THROW(read(folder));
  }
}

TEST(Folder, CountsWhatItIgnores) {
  const TestFolder folder;
  folder.add("cat/1.jpg", kJpeg);
  folder.add("cat/notes.txt", "x");
  folder.add("cat/.hidden.jpg", kJpeg);
  folder.add(".git/1.jpg", kJpeg);
  folder.add("readme.md", "x");
  const auto parts = read(folder);
  EXPECT_EQ(parts->train->size(), 1);
  ASSERT_EQ(parts->notes.size(), 2u);
  EXPECT_EQ(parts->notes[0],
            folder.name() + ": 2 other entries ignored, such as readme.md and cat/notes.txt");
  EXPECT_EQ(
      parts->notes[1],
      folder.name() + ": 2 images ignored in hidden or system files and folders, such as .git");
}

// As torchvision's ImageFolder, in its order.
TEST(Folder, ReadsFoldersInsideOfClasses) {
  const TestFolder folder;
  for (const char* name :
       {"train/cat/2.jpg", "train/cat/side/1.jpg", "train/cat/side/far/1.jpg", "train/cat/a/9.jpg",
        "train/cat/side-2/1.jpg", "train/dog/up/1.jpg", "test/cat/1.jpg", "test/dog/test/1.jpg"}) {
    folder.add(name, kJpeg);
  }
  folder.add("train/cat/side/notes.txt", "x");
  folder.add("train/cat/side/__MACOSX/._1.jpg", "x");
  folder.add("train/cat/@eaDir/1.jpg", kJpeg);
  folder.add("train/dog/up/.ipynb_checkpoints/1.jpg", kJpeg);
  const auto parts = read(folder);
  std::vector<std::string> found;
  for (int64_t i = 0; i < parts->train->size(); ++i) {
    found.push_back(parts->train->describe(i).substr((folder.name() + "/train/").size()));
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{"cat/2.jpg", "cat/a/9.jpg", "cat/side/1.jpg",
                                      "cat/side-2/1.jpg", "cat/side/far/1.jpg", "dog/up/1.jpg"}));
  EXPECT_EQ(parts->train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(parts->train->label(4), 0);
  EXPECT_EQ(parts->train->label(5), 1);
  ASSERT_EQ(parts->test->size(), 2);
  EXPECT_EQ(parts->test->label(1), 1);
  ASSERT_EQ(parts->notes.size(), 2u);
  EXPECT_TRUE(contains(parts->notes[0], "1 other entry ignored, such as cat/side/notes.txt"));
  EXPECT_TRUE(contains(parts->notes[1], "3 images ignored"));
  Image image;
  EXPECT_NO_THROW(parts->train->read(4, {}, image));
}

TEST(Folder, RefusesFoldersOneLevelTooHigh) {
  const TestFolder splits, classes;
  splits.add("pictures/train/cat/1.jpg", kJpeg);
  splits.add("other/1.jpg", kJpeg);
  EXPECT_TRUE(contains(read_error(splits), splits.name() + "/pictures: has a folder 'train'"));
  classes.add("train/pictures/cat/1.jpg", kJpeg);
  classes.add("train/pictures/dog/1.jpg", kJpeg);
  EXPECT_TRUE(contains(read_error(classes),
                       "/train/pictures: the only class, with all images in folders inside of it "
                       "(cat and dog)"));
}

TEST(Folder, EndsAtLinksToTheFolderAbove) {
  const TestFolder folder;
  folder.add("cat/1.jpg", kJpeg);
  folder.add("dog/1.jpg", kJpeg);
  fs::create_directory_symlink(folder.path() / "cat", folder.path() / "cat/again");
  EXPECT_TRUE(contains(read_error(folder), "/cat/again: is a link to a folder that contains it"));
  const auto parts = read_folder({}, {.path = folder.name(), .skip_broken = true});
  EXPECT_EQ(parts->train->size(), 2);
  EXPECT_EQ(parts->skipped[0].reason, "folder that cannot be read");
}

TEST(Folder, KeepsClassesWithoutImagesOnRequest) {
  const TestFolder folder;
  folder.add("cat/1.jpg", kJpeg);
  folder.add("dog/2.txt", "x");
  EXPECT_TRUE(contains(read_error(folder), "/dog: a class without images (.jpg"));
  EXPECT_TRUE(contains(read_error(folder), "remove the folder, or keep the class"));
  const auto parts = read_folder({}, {.path = folder.name(), .skip_broken = true});
  EXPECT_EQ(parts->train->class_names(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_TRUE(parts->skipped.empty());
  EXPECT_TRUE(contains(parts->notes.back(), "1 class without images, kept in the model: dog"));
}

TEST(Folder, SaysWhyNoImageIsLeft) {
  const TestFolder folder;
  folder.add("cat/1.bmp", "x");
  folder.add("dog/2.bmp", "x");
  const auto error =
      data_error([&] { read_folder({}, {.path = folder.name(), .skip_broken = true}); });
  EXPECT_TRUE(contains(error, "no images that can be used; 2 skipped (image of another format)"));
  EXPECT_TRUE(contains(error, "cat/1.bmp: "));
}

// Good images are not broken if the process has too many open files.
TEST(Folder, IsNoBrokenDataIfFilesCannotBeOpened) {
  const TestFolder folder;
  folder.add("cat/1.jpg", kJpeg);
  const auto parts = read(folder);
  Image image;
  const auto error_of_reading = [&](const std::function<void()>& work) -> std::string {
    const OpenFileLimit none(0);
    try {
      work();
    } catch (const DeviceError& error) {
      return error.what();
    }
    return {};
  };
  for (const std::string& error : {error_of_reading([&] { parts->train->read(0, {}, image); }),
                                   error_of_reading([&] { parts->train->header(0); })}) {
    EXPECT_EQ(error, folder.name() +
                         "/cat/1.jpg: cannot open: Too many open files; raise the "
                         "limit of open files of a process (ulimit -n)");
  }
  EXPECT_TRUE(contains(
      error_of_reading([&] { read_folder({}, {.path = folder.name(), .skip_broken = true}); }),
      "Too many open files"));
}

TEST(Folder, IgnoresWhatSystemsAndNotebooksLeave) {
  const TestFolder folder;
  folder.add("train/cat/1.jpg", kJpeg);
  folder.add("train/cat/._1.jpg", "x");
  folder.add("train/cat/Thumbs.db", "x");
  folder.add("train/.DS_Store", "x");
  folder.add("train/.ipynb_checkpoints/1-checkpoint.jpg", kJpeg);
  folder.add("train/__MACOSX/cat/._1.jpg", "x");
  folder.add("__MACOSX/train/cat/._1.jpg", "x");
  const auto parts = read(folder);
  EXPECT_EQ(parts->train->size(), 1);
  EXPECT_EQ(parts->train->class_names(), std::vector<std::string>{"cat"});
  ASSERT_EQ(parts->notes.size(), 2u);
  EXPECT_EQ(
      parts->notes[0],
      folder.name() + ": 1 image ignored in hidden or system files and folders, such as __MACOSX");
  EXPECT_TRUE(contains(parts->notes[1], "/train: 3 images ignored"));
}

TEST(Folder, TakesAFlatTestPartToPredict) {
  const TestFolder folder;
  folder.add("train/cat/1.jpg", kJpeg);
  folder.add("train/dog/1.jpg", kJpeg);
  folder.add("test/2.png", kPng);
  folder.add("test/1.jpg", kJpeg);
  folder.add("test/.DS_Store", "x");
  const auto parts = read(folder);
  EXPECT_EQ(parts->test, nullptr);
  ASSERT_NE(parts->unlabeled_test, nullptr);
  ASSERT_EQ(parts->unlabeled_test->size(), 2);
  EXPECT_EQ(parts->unlabeled_test->describe(1), folder.name() + "/test/2.png");
  Image image;
  parts->unlabeled_test->read(1, {}, image);
  EXPECT_EQ(image.height, 6);
  ASSERT_EQ(parts->notes.size(), 1u);
  EXPECT_TRUE(contains(parts->notes[0], "/test: the 2 images of the test split have no class"));
  fs::rename(folder.path() / "test", folder.path() / "val");
  EXPECT_TRUE(contains(read_error(folder), "/val: no class folders in it"));
}

struct WrongFile {
  std::string file, content, reason, message;
};

TEST(Folder, StopsAtWhatItCannotTakeOrSkipsAndCountsIt) {
  const std::vector<WrongFile> wrong{
      {"train/cat/2.bmp", "x", "image of another format", "convert it to .png or .jpg"},
      {"train/2.jpg", kJpeg, "image outside of class folders", "is not in a class folder"},
      {"test/cow/2.jpg", kJpeg, "unknown class", "not known in train cow"},
  };
  for (const auto& [file, content, reason, message] : wrong) {
    const TestFolder folder;
    folder.add("train/cat/1.jpg", kJpeg);
    folder.add("test/cat/1.jpg", kJpeg);
    folder.add(file, content);
    EXPECT_TRUE(contains(read_error(folder), message));
    const auto parts = read_folder({}, {.path = folder.name(), .skip_broken = true});
    EXPECT_EQ(parts->train->size(), 1);
    EXPECT_EQ(parts->test->size(), 1);
    ASSERT_EQ(parts->skipped.size(), 1u) << file;
    EXPECT_EQ(parts->skipped[0].reason, reason);
    EXPECT_EQ(parts->skipped[0].count, 1);
  }
}

TEST(Folder, FollowsLinks) {
  const TestFolder folder;
  folder.add("elsewhere.bin", kJpeg);
  folder.add("data/cat/1.jpg", kJpeg);
  fs::create_symlink(folder.path() / "elsewhere.bin", folder.path() / "data/cat/2.jpg");
  fs::create_symlink(folder.path() / "nowhere", folder.path() / "data/cat/3.jpg");
  fs::create_symlink(folder.path() / "data/cat", folder.path() / "data/dog");
  fs::create_symlink(folder.path() / "nowhere", folder.path() / "data/notes.txt");
  const auto error = data_error([&] { read_folder({}, {.path = folder.name() + "/data"}); });
  EXPECT_TRUE(contains(error, "/data/cat/3.jpg: cannot open: No such file"));
  const auto parts = read_folder({}, {.path = folder.name() + "/data", .skip_broken = true});
  EXPECT_EQ(parts->train->size(), 4);
  Image image;
  EXPECT_NO_THROW(parts->train->read(3, {}, image));
  ASSERT_EQ(parts->skipped.size(), 1u);
  EXPECT_EQ(parts->skipped[0].reason, "file that cannot be opened");
  EXPECT_EQ(parts->skipped[0].count, 2) << "the link is seen from both classes";
  fs::create_symlink(folder.path() / "nowhere", folder.path() / "data/horse");
  EXPECT_TRUE(contains(data_error([&] { read_folder({}, {.path = folder.name() + "/data"}); }),
                       "/data/horse: cannot open: No such file"));
}

TEST(Folder, ReadsHeadersAndTurnsImages) {
  const TestFolder folder;
  folder.add("cat/1.jpg", with_exif(make_jpeg(make_picture(8, 12, 1, 1)), make_exif(8, false)));
  folder.add("cat/2.png", kPng);
  folder.add("cat/3.jpg", kJpeg.substr(0, 20));
  const auto parts = read(folder);
  EXPECT_EQ(parts->train->header(0).shape, (ImageShape{12, 8, 1}));
  EXPECT_EQ(parts->train->header(1).shape, (ImageShape{6, 5, 3}));
  EXPECT_TRUE(contains(data_error([&] { parts->train->header(2); }),
                       folder.name() + "/cat/3.jpg: damaged JPEG: the file ends in its header"));
  const auto stored = read_folder({}, {.path = folder.name(), .orient = false});
  EXPECT_EQ(stored->train->header(0).shape, (ImageShape{8, 12, 1}));
  EXPECT_NE(stored->train->identity(), parts->train->identity());
  Image image;
  parts->train->read(0, {}, image);
  EXPECT_EQ(image.height, 12);
  stored->train->read(0, {}, image);
  EXPECT_EQ(image.height, 8);
}

TEST(Folder, SaysWhatIsWrongWithTheTree) {
  const TestFolder folder;
  EXPECT_TRUE(contains(read_error(folder), folder.name() + ": no class folders"));
  make_folders(folder.path() / "cat");
  EXPECT_TRUE(contains(read_error(folder), folder.name() + "/cat: a class without images"));
  folder.add("cat/1.txt", "x");
  EXPECT_TRUE(contains(read_error(folder), folder.name() + "/cat: a class without images"));
  EXPECT_TRUE(contains(data_error([&] { read_folder({}, {.path = folder.name() + "/none"}); }),
                       "none of these exists: " + folder.name() + "/none"));
  EXPECT_TRUE(contains(data_error([] { read_folder({}, {}); }), "data.path is not set"));
  EXPECT_TRUE(contains(data_error([&] { read_folder({}, {.path = folder.name() + "/cat/1.txt"}); }),
                       "cannot open: Not a directory"));
}

TEST(Folder, ComparesTheClassesOfTheParts) {
  const TestFolder folder;
  folder.add("train/cat/1.jpg", kJpeg);
  folder.add("train/dog/1.jpg", kJpeg);
  folder.add("test/cat/1.jpg", kJpeg);
  EXPECT_TRUE(
      contains(read_error(folder), "/test: the classes differ from those of train: missing dog"));
  folder.add("test/cow/1.jpg", kJpeg);
  EXPECT_TRUE(contains(read_error(folder), "missing dog; not known in train cow"));
  folder.add("val/cat/1.jpg", kJpeg);
  folder.add("valid/cat/1.jpg", kJpeg);
  EXPECT_TRUE(contains(read_error(folder), "both name the validation split"));
}

TEST(Folder, NamesTheBrokenImage) {
  const TestFolder folder;
  folder.add("cat/1.jpg", "");
  folder.add("cat/2.jpg", kJpeg.substr(0, kJpeg.size() / 2));
  folder.add("cat/3.png", kPng.substr(0, 40));
  folder.add("cat/4.jpg", "BM...........");
  folder.add("cat/5.jpg", kJpeg);
  const auto parts = read(folder);
  const auto error = [&](int64_t index) {
    return data_error([&] {
      Image image;
      parts->train->read(index, {}, image);
    });
  };
  EXPECT_EQ(error(0), folder.name() + "/cat/1.jpg: the file is empty");
  EXPECT_TRUE(contains(error(1), folder.name() + "/cat/2.jpg: damaged JPEG: "));
  EXPECT_TRUE(contains(error(2), folder.name() + "/cat/3.png: damaged PNG: "));
  EXPECT_TRUE(contains(error(3), "4.jpg: is a BMP image, which is not read; convert it"));
  fs::remove(folder.path() / "cat/5.jpg");
  EXPECT_TRUE(contains(error(4), "5.jpg: cannot open: No such file"));
}

TEST(Folder, ReadsFilesLargerThanTheFirstBuffer) {
  const TestFolder folder;
  std::vector<uint8_t> noise(300 * 300 * 3);
  uint32_t state = 7;
  for (uint8_t& value : noise) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<uint8_t>(state >> 24);
  }
  const std::string file = make_png(300, 300, noise);
  ASSERT_GT(file.size(), 200'000u);
  folder.add("cat/1.png", file);
  Image image;
  read(folder)->train->read(0, {}, image);
  image.pixels.resize(noise.size());
  EXPECT_EQ(image.pixels, noise);
}

}  // namespace
}  // namespace gallop::data
