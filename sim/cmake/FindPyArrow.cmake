# Arrow and Parquet from the pyarrow wheel that setup.sh puts into .venv. The wheel has the headers
# and the shared libraries, but under versioned names only (libarrow.so.2500) and no CMake files.
#
# Defines PyArrow_FOUND, PyArrow_LIBRARIES (the two files, for installing) and the targets
# Arrow::arrow_shared and Parquet::parquet_shared. Nothing is cached: a new wheel is seen at once.
file(GLOB PyArrow_DIR LIST_DIRECTORIES true
     ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/pyarrow)
list(SUBLIST PyArrow_DIR 0 1 PyArrow_DIR)  # a virtual environment has one, or none
file(GLOB arrow_library ${PyArrow_DIR}/libarrow.so.*)
file(GLOB parquet_library ${PyArrow_DIR}/libparquet.so.*)
set(PyArrow_LIBRARIES ${arrow_library} ${parquet_library})
list(LENGTH PyArrow_LIBRARIES found_libraries)

include(FindPackageHandleStandardArgs)
if(found_libraries EQUAL 2 AND EXISTS ${PyArrow_DIR}/include/parquet/arrow/writer.h)
  file(STRINGS ${PyArrow_DIR}/include/arrow/util/config.h PyArrow_VERSION
       REGEX "define ARROW_VERSION_STRING")
  string(REGEX MATCH "[0-9.]+" PyArrow_VERSION "${PyArrow_VERSION}")
  set(PyArrow_INCLUDE_DIR ${PyArrow_DIR}/include)
endif()
find_package_handle_standard_args(PyArrow REQUIRED_VARS PyArrow_INCLUDE_DIR
                                  VERSION_VAR PyArrow_VERSION)

if(PyArrow_FOUND AND NOT TARGET Arrow::arrow_shared)
  add_library(Arrow::arrow_shared SHARED IMPORTED)
  set_target_properties(Arrow::arrow_shared PROPERTIES
    IMPORTED_LOCATION ${arrow_library}
    INTERFACE_INCLUDE_DIRECTORIES ${PyArrow_INCLUDE_DIR})
  add_library(Parquet::parquet_shared SHARED IMPORTED)
  set_target_properties(Parquet::parquet_shared PROPERTIES
    IMPORTED_LOCATION ${parquet_library}
    INTERFACE_LINK_LIBRARIES Arrow::arrow_shared)
endif()
