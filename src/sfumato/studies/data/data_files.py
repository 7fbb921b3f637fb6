"""Files of real data that studies read, and where they come from."""

from __future__ import annotations

from sfumato.studies.study import DataFile

ACTIVITIES = DataFile(
    "uci_har_activity.csv.gz",
    "UCI 'Human Activity Recognition Using Smartphones' (Anguita), CC BY 4.0",
)
VISITS = DataFile(
    "msnbc_spmf.txt.gz", "UCI 'msnbc.com anonymous web data', CC BY 4.0, in the form of SPMF"
)
CLICKS = DataFile("kosarak_20k.txt.gz", "FIMI repository, 'kosarak' (F. Bodon), 20,000 sessions")
BIKE_STATIONS = DataFile("bike_stations.txt.gz", "Metro Bike Share open data, in the form of SPMF")
GAZE = DataFile(
    "gaze_lund2013_500hz.csv.gz", "Lund 2013 gaze recordings (Andersson et al. 2017), GPL-3.0"
)
BIKES_HOURLY = DataFile("bikeshare_hour.csv.gz", "UCI 'Bike Sharing' (Fanaee-T), CC BY 4.0")
BIKES_DAILY = DataFile("bikeshare_day.csv.gz", "UCI 'Bike Sharing' (Fanaee-T), CC BY 4.0")
TRAFFIC = DataFile("nyc_traffic_2011_2012.csv.gz", "NYC Open Data, 'Traffic Volume Counts'")
FTP_75 = DataFile("epa_ftp75.csv.gz", "US EPA, FTP-75 drive cycle, public domain")
UDDS = DataFile("epa_udds.csv.gz", "US EPA, UDDS drive cycle, public domain")
GRADES_MATHS = DataFile("student_mat.csv.gz", "UCI 'Student Performance' (Cortez), CC BY 4.0")
GRADES_PORTUGUESE = DataFile("student_por.csv.gz", "UCI 'Student Performance' (Cortez), CC BY 4.0")
SALARIES = DataFile(
    "baltimore_salaries_fy2019.csv.gz", "Open Baltimore, employee salaries of FY2019, public record"
)
CARDIO = DataFile(
    "cardio_train.csv.gz", "Kaggle, 'Cardiovascular Disease dataset' (S. Ulianova), ';'-separated"
)
POWER = DataFile("powercons_10min.csv.gz", "UCR archive, 'PowerCons' (EDF R&D)")
GOWALLA = DataFile(
    "loc-gowalla_totalCheckins.txt.gz",
    "SNAP, 'Gowalla' (Cho, Myers, Leskovec 2011): user, time, latitude, longitude, place",
)
